/**
 * Reads a response body within bounds: so many bytes off the wire, so many after decoding. A body that is
 * larger is cut and marked; one whose coding is broken is a failure, never half a page that looks whole.
 */
import { type Coding, codingsOf, decodeBody } from "./content-codings.ts";
import type { SiteAnswer, TakeBytes } from "./exchange.ts";

export type { TakeBytes };

/** Most body bytes that are kept, on the wire and decoded (real pages are smaller, 99.9 % of them). */
export const maxBodyBytes = 5 * 1024 * 1024;

/** Some sites send the whole page along with a redirect; more, without saying how much, is no page. */
const maxRedirectBytes = 256 * 1024;

export interface Body {
  readonly bytes: Buffer;
  readonly wireBytes: number;
  readonly truncated: boolean;
}

export interface BodyBounds {
  readonly limit: number;
  readonly take: TakeBytes;
  /** Asked with the first bytes of a body that is not encoded: false ends the reading there. */
  readonly wants?: (head: Buffer) => boolean;
}

/** The decoded body, at most `limit` bytes of it. Throws a Failure. */
export async function readBody(answer: SiteAnswer, limit: number, take: TakeBytes): Promise<Body> {
  return (await readWantedBody(answer, { limit, take }))!;
}

/** The same; null when its first bytes were not wanted. */
export async function readWantedBody(answer: SiteAnswer, bounds: BodyBounds): Promise<Body | null> {
  const codings = await codingsOrDrop(answer, bounds.take);
  const { limit, take, wants } = bounds;
  const wire = await answer.read({ limit, take, wants: codings.length === 0 ? wants : undefined });
  if (wire.unwanted) return null;
  let { bytes, truncated } = wire;
  for (const coding of codings.reverse()) {
    const decoded = await decodeBody(coding, { bytes, cut: truncated, limit });
    ({ bytes, truncated } = decoded);
  }
  return { bytes, truncated, wireBytes: wire.bytes.length };
}

async function codingsOrDrop(answer: SiteAnswer, take: TakeBytes): Promise<Coding[]> {
  try {
    return codingsOf(answer.headers["content-encoding"]);
  } catch (error) {
    await answer.drop(take);
    throw error;
  }
}

/** Reads nothing more: closes the connection unless what is left is small. */
export async function dropBody(answer: SiteAnswer, take: TakeBytes): Promise<void> {
  await answer.drop(take);
}

/** The body of a redirect is not wanted either, but it must have an end. */
export async function hasEndedRedirect(answer: SiteAnswer, take: TakeBytes): Promise<boolean> {
  return answer.drop(take, maxRedirectBytes);
}
