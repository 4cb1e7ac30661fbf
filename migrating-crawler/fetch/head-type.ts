/** Asks for one URL by HEAD: whether what it leads to is of a type that is read. Never throws. */

import type { LinkType } from "../crawl/link-types.ts";
import { answerOfFailure, type HostAnswer } from "../limits/host-answer.ts";
import { retryAfterSeconds } from "../limits/host-pace.ts";
import { failureOf } from "../net/failure.ts";
import { dropBody } from "./ask-robots.ts";
import type { FetchSetting } from "./fetch-page.ts";
import type { SiteClient } from "./site-client.ts";
import { contentTypeOf, judgeHeader } from "./wanted-type.ts";

export interface HeadAnswer {
  readonly type: LinkType;
  /** How the host answered, for its pace; null: it was not asked. */
  readonly answer: HostAnswer | null;
}

/** Only what was found (200) has a type. A host that fails or asks to be left alone is not asked for further links. */
export async function headType(
  client: SiteClient,
  url: URL,
  setting: Pick<FetchSetting, "userAgent" | "take" | "now">,
): Promise<HeadAnswer> {
  const startedMs = performance.now();
  const tookMs = () => performance.now() - startedMs;
  try {
    const head = await client.get({
      path: url.pathname + url.search,
      headers: { "user-agent": setting.userAgent, accept: "text/html,*/*;q=0.1" },
      method: "HEAD",
    });
    await dropBody(head, setting.take);
    const { status, headers } = head;
    const wait = retryAfterSeconds(headers["retry-after"], setting.now());
    const answer = { status, tookMs: tookMs(), retryAfterSeconds: wait };
    if (status === 429 || status >= 500) return { type: "stop", answer };
    const contentType = contentTypeOf(headers["content-type"]);
    const isRead = status !== 200 || judgeHeader(contentType, headers) !== "leave";
    return { type: isRead ? "readable" : { notRead: contentType.slice(0, 200) }, answer };
  } catch (error) {
    return { type: "stop", answer: answerOfFailure(failureOf(error).code, tookMs()) };
  }
}
