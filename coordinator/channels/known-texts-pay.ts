/** Whether telling a crawler what is known of a channel saves more than it costs. */

/** What the text of a page takes on the wire, packed and deflated (test/bench/results/digests.md). */
const textBytes = 700;

export interface KnownTexts {
  /** What the set takes on the wire. */
  readonly setBytes: number;
  /** URLs of the lease that were never read: the digest of the others goes with each of them. */
  readonly newUrls: number;
  /** Share of the channel's pages whose body another of its pages has, too. */
  readonly duplicateShare: number;
}

export function knownTextsPay({ setBytes, newUrls, duplicateShare }: KnownTexts): boolean {
  return setBytes < duplicateShare * newUrls * textBytes;
}
