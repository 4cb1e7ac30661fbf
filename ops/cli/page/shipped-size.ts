/** How many bytes a result takes on the wire as a session's first, which has nothing before it to refer to. */
import { deflateRawSync } from "node:zlib";
import { FrameWriter, joinFrame, packResult } from "#protocol/packed/message-frames";
import type { FetchResult } from "#protocol/result";

export interface ShippedSize {
  readonly shippedBytes: number;
  /** How many times smaller than the page's HTML; null without a page. */
  readonly times: number | null;
}

export function shippedSize(result: FetchResult): ShippedSize {
  const { numbers, text } = new FrameWriter().result(1, packResult("1", result));
  const shippedBytes = joinFrame(numbers, deflateRawSync(text)).length;
  return { shippedBytes, times: result.bodyBytes === 0 ? null : result.bodyBytes / shippedBytes };
}
