/** Where sites find the keys by which the fleet signs its requests. */
import { keySetUrlAt } from "#protocol/identity";
import { contactPageOf } from "#protocol/user-agent";

/** The URL of the fleet's key set as sites reach it; null: not by https, and verifiers take no other. */
export function publishedKeySet({
  publicUrl,
  userAgent,
}: {
  readonly userAgent: string;
  readonly publicUrl: string | null;
}): string | null {
  const coordinator = publicUrl === null ? contactPageOf(userAgent) : new URL(publicUrl);
  return coordinator && keySetUrlAt(coordinator);
}
