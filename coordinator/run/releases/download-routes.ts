/**
 * What supervisors fetch: bundles by digest, manifests, rotations of the release keys, the list of revoked releases,
 * and the program for partners. All of it is public, and none has to be trusted on its way, because supervisors
 * verify it. Since bundles are large and partners' connections slow, downloads have limits of their own: in total,
 * per address, for silence and for time.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { LRUCache } from "lru-cache";
import type { CurrentRelease, KeysFile } from "#protocol/release";
import { type Envelope, formatEnvelope } from "#protocol/release-envelope";
import { sendError } from "../../web/guard.ts";
import { ConnectionLimits } from "../../web/limits.ts";
import type { PageError } from "../../web/page-frame.ts";
import { hasTag } from "../../web/validators.ts";
import {
  type ReleaseFileStore,
  type ReleaseKeyStore,
  type ReleaseStore,
  type ServedFile,
  served,
} from "./release-store.ts";
import { mayRun } from "./staging.ts";

export interface ReleaseFilePorts {
  readonly files: ReleaseFileStore;
  readonly releases: Pick<ReleaseStore, "list" | "revocations" | "timestamp">;
  readonly keys: Pick<ReleaseKeyStore, "rotations">;
  readonly program: () => Promise<ServedFile | null>;
  /** Called when the supervisor's file is requested by an invitation's command, or by a client that claims to be one. */
  readonly onProgram?: (invitationId: number, now: Date) => Promise<void>;
  readonly now: () => Date;
  readonly version: string;
  readonly limits?: Partial<DownloadLimits>;
}

export type DownloadLimits = typeof defaultLimits;

const defaultLimits = {
  downloads: 32,
  downloadsPerAddress: 8,
  /** A client that reads nothing for this long is disconnected. */
  silenceMs: 60_000,
  /** Enough for 5 MB at 8 KB/s. */
  downloadMs: 640_000,
};
/** Maximum bundles kept in memory. A fleet fetches one or two at a time. */
const keptBundles = 2;
const digestForm = /^[0-9a-f]{64}$/;

/** Tells the request guard that `downloads` has limits of its own. */
const unbounded = { config: { boundedElsewhere: true } } as const;

type Params = { readonly Params: { readonly digest: string } };

export function addReleaseFiles(app: FastifyInstance, ports: ReleaseFilePorts): void {
  const { files, releases, keys } = ports;
  const download = downloads({ ...defaultLimits, ...ports.limits }, ports.version);
  const bundles = new LRUCache<string, ServedFile>({ max: keptBundles });
  const bundleOf = async (digest: string): Promise<ServedFile | null> => {
    const kept = bundles.get(digest);
    if (kept) return (await files.manifest(digest)) === null ? null : kept;
    const bytes = await files.bundle(digest);
    if (bytes === null) return null;
    const file = served(bytes);
    bundles.set(digest, file);
    return file;
  };
  app.get("/releases/dock.mjs", unbounded, async (request, reply) => {
    const number = (request.query as { readonly invitation?: unknown }).invitation;
    if (typeof number === "string" && /^\d{1,9}$/.test(number))
      await ports.onProgram?.(Number(number), ports.now());
    return await download(request, reply.header("cache-control", "no-cache"), {
      read: ports.program,
      missing: noProgram,
    });
  });
  app.get<Params>("/releases/:digest", unbounded, (request, reply) => {
    const { digest } = request.params;
    const read = async () => (digestForm.test(digest) ? await bundleOf(digest) : null);
    reply.header("cache-control", "public, max-age=86400");
    return download(request, reply, { read, missing: noRelease });
  });
  const addSigned = (path: string, read: (digest: string) => Promise<Envelope | null>, missing: PageError) =>
    app.get<Params>(`/releases/${path}`, async (request, reply) => {
      const signed = await read(request.params.digest);
      if (signed === null) return sendError(request, reply, missing, ports);
      return sendJson(request, reply, formatEnvelope(signed));
    });
  const manifestOf = async (digest: string) =>
    digestForm.test(digest) ? await files.manifest(digest) : null;
  addSigned(":digest/manifest.json", manifestOf, noRelease);
  addSigned("revocations.json", releases.revocations, noneRevoked);
  addSigned("timestamp.json", releases.timestamp, noneStated);
  app.get("/releases/keys.json", async (request, reply) => {
    const file: KeysFile = { rotations: [...(await keys.rotations())] };
    return sendJson(request, reply, `${JSON.stringify(file)}\n`);
  });
  app.get("/releases/current.json", async (request, reply) =>
    sendJson(request, reply, `${JSON.stringify(await currentOf(ports))}\n`),
  );
}

async function currentOf({ files, releases, keys, now }: ReleaseFilePorts): Promise<CurrentRelease> {
  const newest = (await releases.list()).find((release) => release.stage === "all" && mayRun(release, now()));
  return {
    manifest: newest ? await files.manifest(newest.digest) : null,
    revocations: await releases.revocations(),
    rotations: [...(await keys.rotations())],
  };
}

function sendJson(request: FastifyRequest, reply: FastifyReply, text: string): FastifyReply {
  const { bytes, digest } = served(Buffer.from(text));
  reply.headers({ etag: `"${digest}"`, "cache-control": "no-cache" });
  if (hasTag(request, `"${digest}"`)) return reply.code(304).send();
  return reply.type("application/json; charset=utf-8").send(bytes);
}

/** Reads and sends files within the limits. Clients beyond them are told when to retry. */
function downloads(limits: DownloadLimits, version: string) {
  const open = new ConnectionLimits(
    {
      connections: limits.downloads,
      connectionsPerAddress: limits.downloadsPerAddress,
      failuresPerAddressAndMinute: Number.POSITIVE_INFINITY,
    },
    () => performance.now(),
  );
  return async (
    request: FastifyRequest,
    reply: FastifyReply,
    wanted: { readonly read: () => Promise<ServedFile | null>; readonly missing: PageError },
  ): Promise<FastifyReply> => {
    const address = request.socket.remoteAddress ?? "unknown";
    if (open.open(address) !== null) {
      return sendError(request, reply.header("retry-after", "30"), tooManyDownloads, { version });
    }
    endDownload(reply, limits.downloadMs, () => open.close(address));
    const file = await wanted.read();
    if (file === null) return sendError(request, reply, wanted.missing, { version });
    const { bytes, digest } = file;
    const part = partOf(request, bytes.length);
    const repr = `sha-256=:${Buffer.from(digest, "hex").toString("base64")}:`;
    reply.headers({ etag: `"${digest}"`, "repr-digest": repr });
    if (hasTag(request, `"${digest}"`)) return reply.code(304).send();
    reply.raw.setTimeout(limits.silenceMs, () => reply.raw.destroy());
    reply.type("text/javascript; charset=utf-8").header("accept-ranges", "bytes");
    if (part === null) return reply.send(bytes);
    reply.header("content-range", `bytes ${part.first}-${part.last}/${bytes.length}`);
    return reply.code(206).send(bytes.subarray(part.first, part.last + 1));
  };
}

/** Parses a single range that has a start (RFC 9110 section 14.1.2). For any other range the whole file is sent. */
function partOf({ headers }: FastifyRequest, length: number) {
  const [, from, to = ""] = /^bytes=(\d{1,9})-(\d{0,9})$/.exec(headers.range ?? "") ?? [];
  if (from === undefined || Number(from) >= length || headers["if-range"] !== undefined) return null;
  const last = to === "" ? length - 1 : Math.min(length - 1, Number(to));
  return last < Number(from) ? null : { first: Number(from), last };
}

function endDownload({ raw }: FastifyReply, downloadMs: number, ended: () => void): void {
  const cut = setTimeout(() => raw.destroy(), downloadMs);
  raw.once("close", () => {
    clearTimeout(cut);
    ended();
  });
}

const noRelease = {
  status: 404,
  title: "No such release",
  words: "No release with this digest is offered: it was never published here, was revoked, or is held.",
};
const noneRevoked = {
  status: 404,
  title: "Nothing was revoked",
  words: "No release was ever revoked, so there is no list.",
};
const noneStated = {
  status: 404,
  title: "No statement of the newest release",
  words: "No statement of the newest release was ever signed for this fleet, so there is none.",
};
const noProgram = {
  status: 404,
  title: "The crawler's file is not there",
  words: "This coordinator has no nearcrawl-crawler.mjs: its operator has to build it (npm run build).",
};
const tooManyDownloads = {
  status: 503,
  title: "Too many downloads",
  words: "The maximum number of downloads is running. Try again in half a minute.",
};
