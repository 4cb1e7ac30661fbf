/**
 * The folder HOME/releases: bundles under their digests with their signed manifests, what the dock remembers
 * (state.json), and the signed lists that it has followed. The crawler may only read it. Every file is written beside its place, flushed and
 * put there by a rename.
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

/** Of state.json and of each signed list; a longer file is none of ours. */
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

  /** Where a bundle is written until it is verified. */
  draftPath(digest: string): string {
    return join(this.#folder, `${digest}.draft`);
  }

  /** A damaged file is set aside, and the dock starts over: it asks the coordinator what to run. */
  readState(): ReleaseState {
    return this.read("state.json", releaseState) ?? emptyState;
  }

  saveState(state: ReleaseState): void {
    this.write("state.json", state);
  }

  /** Null when there is none, or none that can be used. */
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

  /** As it was signed; null: there is none. */
  readManifest(digest: string): Envelope | null {
    return this.read(manifestName(digest), envelope);
  }

  writeManifest(digest: string, signed: Envelope): void {
    this.write(manifestName(digest), signed);
  }

  /** The verified draft takes its place. */
  keepDraft(digest: string): void {
    renameSync(this.draftPath(digest), this.bundlePath(digest));
    this.#syncFolder();
  }

  /** Whether the bundle is there, byte for byte. */
  async holds({ digest, bytes }: KeptRelease): Promise<boolean> {
    const path = this.bundlePath(digest);
    if (statSync(path, { throwIfNoEntry: false })?.size !== bytes) return false;
    const hash = createHash("sha256");
    for await (const piece of createReadStream(path)) hash.update(piece as Buffer);
    return hash.digest("hex") === digest;
  }

  /** At the start: what a dock before this one did not finish. */
  removeDrafts(): void {
    this.#remove((name) => name.endsWith(".draft"));
  }

  /** Bundles that nobody will want again. One that is offered may have just been put here. */
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

  /** A rename is on the disk only when the folder is. */
  #syncFolder(): void {
    const folder = openSync(this.#folder, "r");
    try {
      fsyncSync(folder);
    } finally {
      closeSync(folder);
    }
  }
}

// HOME/releases/pins.json: whose signatures the dock believes at first. The membership names these keys too, but the
// crawler writes that file; this one it may only read, so that whoever got into a crawler adds no key of his own.

const pins = z.object({ releaseKeys, releaseThreshold });

export const releasesFolder = (home: string) => join(home, "releases");
const pinsFile = (home: string) => join(releasesFolder(home), "pins.json");

/** At every join: a person vouches for the invitation. */
export function pinReleaseKeys(home: string, pinned: ReleasePins): void {
  mkdirSync(releasesFolder(home), { recursive: true, mode: 0o700 });
  writePrivateJson(pinsFile(home), pins.parse(pinned));
}

type ReleasePins = Pick<Membership, "releaseKeys" | "releaseThreshold">;

/**
 * Raw Ed25519 public keys, base64url. A folder that joined before there was such a file keeps those of its membership
 * from now on. Throws a ConfigError when the file is damaged: the membership's word would be no good replacement.
 */
export function pinnedReleaseKeys(home: string, membership: ReleasePins): Role {
  const ifDamaged = "Put it back from a backup, or ask the operator for an invitation and join --again.";
  const kept = readPrivateJson(pinsFile(home), pins, ifDamaged);
  if (kept === null) pinReleaseKeys(home, membership);
  const { releaseKeys: keys, releaseThreshold: threshold } = kept ?? membership;
  return { keys, threshold };
}
