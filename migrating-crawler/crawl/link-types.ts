/**
 * Implements the optional link type check (Anansi, sections 3.2 and 4.2): before a page's result is sent, some of its links
 * are requested by HEAD. Links of types that no crawler reads are reported, so that nobody fetches them. The thesis checks
 * every link of a page, which takes 20 seconds for 200 links. Here, only a limited number of links to the page's own origin
 * are checked, once per slice, in the host's turns and where robots.txt allows it.
 */
import { retryAfterSeconds } from "#core/foreign-dates";
import { canParseUrl } from "#core/ip/url-host";
import type { PageLink } from "#protocol/result";
import { failureOf } from "../core/failure.ts";
import { gateInHeaders } from "../fetch/bot-gate.ts";
import type { FetchSetting } from "../fetch/fetch-page.ts";
import type { SiteClient } from "../fetch/site-client.ts";
import { contentTypeOf, judgeHeader } from "../fetch/wanted-type.ts";
import { answerOfFailure, type HostAnswer } from "../limits/host-pace.ts";

/** `notRead`: an unwanted type. `readable`: a wanted or unknown type. `stop`: the host must not be asked anything more now. */
export type LinkType = { readonly notRead: string } | "readable" | "stop";

interface LinkTypeCheck {
  readonly page: string;
  readonly most: number;
  /** URLs that were already asked. The check adds to them. */
  readonly asked: Set<string>;
  readonly ask: (url: URL) => Promise<LinkType>;
}

/** Returns all links. Those that no crawler reads have their type. */
export async function withLinkTypes(links: readonly PageLink[], check: LinkTypeCheck): Promise<PageLink[]> {
  const { origin } = new URL(check.page);
  const typed = [...links];
  let left = check.most;
  for (const [index, link] of links.entries()) {
    if (left === 0) break;
    if (link.url === check.page || check.asked.has(link.url) || !canParseUrl(link.url)) continue;
    const url = new URL(link.url);
    if (url.origin !== origin) continue;
    const type = await check.ask(url);
    if (type === "stop") break;
    left -= 1;
    check.asked.add(link.url);
    if (type !== "readable") typed[index] = { ...link, contentType: type.notRead };
  }
  return typed;
}

// Asks by HEAD whether the type of a URL is one that crawlers read. Never throws.

interface HeadAnswer {
  readonly type: LinkType;
  /** The host's answer, for its pace. Null if the host was not asked. */
  readonly answer: HostAnswer | null;
}

/** Only a 200 has a type. A host that fails, or asks to be left alone, is not asked about further links. */
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
    await head.drop(setting.take);
    const { status, headers } = head;
    const wait = retryAfterSeconds(headers["retry-after"], setting.now());
    if (gateInHeaders(head) !== null)
      return { type: "stop", answer: answerOfFailure("challenged", tookMs()) };
    const answer = { status, tookMs: tookMs(), retryAfterSeconds: wait };
    if (status === 429 || status >= 500) return { type: "stop", answer };
    const contentType = contentTypeOf(headers["content-type"]);
    const isRead = status !== 200 || judgeHeader(contentType, headers) !== "leave";
    return { type: isRead ? "readable" : { notRead: contentType.slice(0, 200) }, answer };
  } catch (error) {
    return { type: "stop", answer: answerOfFailure(failureOf(error).code, tookMs()) };
  }
}
