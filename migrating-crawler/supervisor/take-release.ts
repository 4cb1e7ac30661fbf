/**
 * From an offer to a verified bundle on the disk: manifest, keys and revocations, the partner's policy, then the
 * bundle, whose length and digest must be the manifest's. Whatever is not right is an answer, not an error.
 */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { z } from "zod";
import { releaseVersion } from "#protocol/messages";
import { currentRelease, type ReleaseManifest, verifyManifest } from "#protocol/release";
import { type Envelope, maxEnvelopeBytes, readEnvelope } from "#protocol/release-envelope";
import type { ReleaseReport } from "./dock-messages.ts";
import { judgeByPolicy, type ReleasePolicy } from "./release-policy.ts";
import type { ReleaseShelf } from "./release-shelf.ts";
import { type ReleaseSource, SourceFailure } from "./release-source.ts";
import { badReason, type KeptRelease, type ReleaseState } from "./release-state.ts";
import type { Trust } from "./release-trust.ts";

/** A manifest, a list of revoked releases, and as much for all rotations together. */
const maxCurrentBytes = 3 * maxEnvelopeBytes;

/** `retry`: it may be better another time (the network, a bundle that is not there yet). */
export type Taken =
  | { readonly type: "taken"; readonly release: KeptRelease }
  | { readonly type: "left"; readonly report: ReleaseReport; readonly retry: boolean }
  | { readonly type: "failed"; readonly reason: string };

export interface TakingTools {
  readonly source: ReleaseSource;
  readonly shelf: ReleaseShelf;
  readonly dockVersion: string;
  readonly policy: ReleasePolicy;
  readonly trust: Trust;
  readonly now: Date;
}

/** The release with this digest; null: it runs already. Throws nothing of the network's: that is `failed`. */
export async function takeOffered(
  offer: Offer,
  state: ReleaseState,
  tools: TakingTools,
): Promise<Taken | null> {
  return await orFailed(async () => {
    const text = await tools.source.text(`/releases/${offer.digest}/manifest.json`, maxEnvelopeBytes);
    if (text === null) return failed("the coordinator does not have the manifest of the release it offers");
    const signed = readEnvelope(text);
    if ("refused" in signed) return failed(`the manifest: ${signed.refused}`);
    return await takeSigned(signed, { ...offer, state }, tools);
  });
}

/** What the coordinator offers to all; null: nothing, or what runs already. */
export async function takeCurrent(state: ReleaseState, tools: TakingTools): Promise<Taken | null> {
  return await orFailed(async () => {
    const text = await tools.source.text("/releases/current.json", maxCurrentBytes);
    const { data } = currentRelease.safeParse(text === null ? null : jsonOf(text));
    if (data === undefined) return failed("current.json is not what a coordinator serves");
    if (data.manifest === null) return null;
    const firstAt = tools.now;
    return await takeSigned(data.manifest, { digest: null, firstAt, state }, tools);
  });
}

export interface Offer {
  readonly digest: string;
  /** When it was first offered here. */
  readonly firstAt: Date;
}

interface Wanted {
  readonly digest: string | null;
  readonly firstAt: Date;
  readonly state: ReleaseState;
}

/** Null: it runs already, or nothing better is there. */
async function takeSigned(signed: Envelope, wanted: Wanted, tools: TakingTools): Promise<Taken | null> {
  const { state, digest } = wanted;
  const { keys, revocations } = tools.trust;
  const { dockVersion, now } = tools;
  const conditions = { keys, now, newestSequence: state.newestSequence, revocations, dockVersion };
  const verified = verifyManifest(signed, conditions);
  // What is offered to all is mostly what runs here, or older: that is no news.
  if ("refused" in verified && digest === null && state.current !== null) return null;
  if ("refused" in verified) return refused(versionIn(signed), verified.refused);
  const { manifest } = verified;
  const { version } = manifest;
  if (digest !== null && manifest.digest !== digest)
    return refused(version, "the manifest is another release's");
  if (manifest.digest === state.current?.digest) return null;
  const bad = badReason(state, manifest.digest);
  if (bad !== null) return refused(version, `it was tried here: ${bad}`);
  const answer = judgeByPolicy(version, {
    policy: tools.policy,
    now,
    firstOfferedAt: wanted.firstAt,
    hasRelease: state.current !== null,
  });
  if (!answer.take) {
    const { state: what, reason } = answer;
    return { type: "left", report: { version, state: what, reason }, retry: true };
  }
  return await fetchBundle({ signed, manifest }, tools);
}

interface Signed {
  readonly signed: Envelope;
  readonly manifest: ReleaseManifest;
}

/** The manifest stays beside the bundle: it is verified again whenever the bundle is started. */
async function fetchBundle({ signed, manifest }: Signed, tools: TakingTools): Promise<Taken> {
  const { source, shelf } = tools;
  const { version, digest, sequence, bytes } = manifest;
  const release = { version, digest, sequence, bytes };
  if (await shelf.holds(release)) {
    shelf.writeManifest(digest, signed);
    return { type: "taken", release };
  }
  const file = shelf.draftPath(digest);
  if (!(await source.download(`/releases/${digest}`, { bytes, file }))) {
    return failed("the coordinator does not have the bundle of the release it offers");
  }
  const hash = createHash("sha256");
  let found = 0;
  for await (const piece of createReadStream(file)) {
    found += (piece as Buffer).length;
    hash.update(piece as Buffer);
  }
  if (found !== bytes) return refused(version, `the bundle has ${found} bytes, its manifest says ${bytes}`);
  if (hash.digest("hex") !== digest) return refused(version, "the bundle is not the one that was signed");
  shelf.writeManifest(digest, signed);
  shelf.keepDraft(digest);
  return { type: "taken", release };
}

async function orFailed<Value>(work: () => Promise<Value>): Promise<Value | Taken> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof SourceFailure) return failed(error.message);
    throw error;
  }
}

const failed = (reason: string): Taken => ({ type: "failed", reason });

function refused(version: string, reason: string): Taken {
  return { type: "left", report: { version, state: "refused", reason: reason.slice(0, 500) }, retry: false };
}

/** Of a manifest that is not believed: to name it in the report, if it has a name at all. */
function versionIn({ body }: Envelope): string {
  const { data } = z.object({ version: releaseVersion }).safeParse(jsonOf(body));
  return data?.version ?? "0.0";
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
