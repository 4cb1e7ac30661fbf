/**
 * Manages HOME/releases: bundles named by digest with their signed manifests, the supervisor's state (state.json), and the
 * signed lists. The crawler can only read the folder. Every file is written as a draft, flushed and renamed.
 */
import { createHash } from "node:crypto";
import {
  closeSync,
  createReadStream,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { releaseKeys, releaseThreshold } from "#protocol/invitation";
import { type Envelope, envelope, type Role } from "#protocol/release-envelope";
import { jsonOf } from "../core/json.ts";
import type { Membership } from "../core/membership.ts";
import { readPrivateJson, writePrivateJson } from "../core/private-file.ts";
import {
  emptyState,
  type KeptRelease,
  keptReleases,
  type ReleaseState,
  releaseState,
} from "../core/release-state.ts";

/** This program never writes a state.json or signed list longer than this, so a longer one is treated as damaged. */
const maxFileBytes = 8 * 1024 * 1024;

const manifestName = (digest: string) => `${digest}.manifest.json`;

export class ReleaseShelf {
  readonly #folder: string;
  readonly #warn: (words: string) => void;

  constructor({ home, warn }: { readonly home: string; readonly warn: (words: string) => void }) {
    this.#folder = releasesFolder(home);
    this.#warn = warn;
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
  }

  bundlePath(digest: string): string {
    return join(this.#folder, `${digest}.mjs`);
  }

  draftPath(digest: string): string {
    return join(this.#folder, `${digest}.draft`);
  }

  /** A damaged file is set aside. The supervisor then asks the coordinator what to run. */
  readState(): ReleaseState {
    return this.read("state.json", releaseState) ?? emptyState;
  }

  saveState(state: ReleaseState): void {
    this.write("state.json", state);
  }

  read<Schema extends z.ZodType>(name: string, schema: Schema): z.infer<Schema> | null {
    const path = join(this.#folder, name);
    const size = statSync(path, { throwIfNoEntry: false })?.size;
    if (size === undefined) return null;
    const checked = size > maxFileBytes ? null : schema.safeParse(jsonOf(readFileSync(path, "utf8")));
    if (checked?.success) return checked.data;
    this.#warn(`${path} is damaged: it is set aside as ${name}.damaged`);
    renameSync(path, `${path}.damaged`);
    return null;
  }

  write(name: string, value: unknown): void {
    const path = join(this.#folder, name);
    writeFileSync(`${path}.draft`, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600, flush: true });
    renameSync(`${path}.draft`, path);
    this.#syncFolder();
  }

  readManifest(digest: string): Envelope | null {
    return this.read(manifestName(digest), envelope);
  }

  writeManifest(digest: string, signed: Envelope): void {
    this.write(manifestName(digest), signed);
  }

  keepDraft(digest: string): void {
    renameSync(this.draftPath(digest), this.bundlePath(digest));
    this.#syncFolder();
  }

  async holds({ digest, bytes }: KeptRelease): Promise<boolean> {
    const path = this.bundlePath(digest);
    if (statSync(path, { throwIfNoEntry: false })?.size !== bytes) return false;
    const hash = createHash("sha256");
    for await (const piece of createReadStream(path)) hash.update(piece as Buffer);
    return hash.digest("hex") === digest;
  }

  /** Removes unfinished files of an earlier supervisor. Must be called at the start. */
  removeDrafts(): void {
    this.#remove((name) => name.endsWith(".draft"));
  }

  /** Removes unneeded bundles, but keeps an offered one, which may have just arrived. */
  removeOld(state: ReleaseState): void {
    const digests = [...keptReleases(state).map(({ digest }) => digest), state.offered?.digest];
    const wanted = new Set(digests.flatMap((digest) => [`${digest}.mjs`, manifestName(String(digest))]));
    this.#remove((name) => /^[0-9a-f]{64}\.(mjs|manifest\.json)$/.test(name) && !wanted.has(name));
  }

  #remove(isMeant: (name: string) => boolean): void {
    for (const name of readdirSync(this.#folder)) {
      if (isMeant(name)) rmSync(join(this.#folder, name), { force: true });
    }
  }

  /** A rename is durable only once the folder is flushed. */
  #syncFolder(): void {
    const folder = openSync(this.#folder, "r");
    try {
      fsyncSync(folder);
    } finally {
      closeSync(folder);
    }
  }
}

// HOME/releases/pins.json stores whose signatures the supervisor initially trusts. The membership also names these keys, but
// the crawler writes that file. It can only read this one, so nobody who controls a crawler can add a key.

const pins = z.object({ releaseKeys, releaseThreshold });

export const releasesFolder = (home: string) => join(home, "releases");
const pinsFile = (home: string) => join(releasesFolder(home), "pins.json");

/** Must be called at every join, where a person vouches for the invitation. */
export function pinReleaseKeys(home: string, pinned: ReleasePins): void {
  mkdirSync(releasesFolder(home), { recursive: true, mode: 0o700 });
  writePrivateJson(pinsFile(home), pins.parse(pinned));
}

type ReleasePins = Pick<Membership, "releaseKeys" | "releaseThreshold">;

/**
 * Returns raw Ed25519 public keys in base64url. A folder that joined before this file existed adopts those of its membership.
 * Throws a ConfigError if the file is damaged, because the membership cannot be trusted instead.
 */
export function pinnedReleaseKeys(home: string, membership: ReleasePins): Role {
  const ifDamaged = "Put it back from a backup, or ask the operator for an invitation and join --again.";
  const kept = readPrivateJson(pinsFile(home), pins, ifDamaged);
  if (kept === null) pinReleaseKeys(home, membership);
  const { releaseKeys: keys, releaseThreshold: threshold } = kept ?? membership;
  return { keys, threshold };
}
