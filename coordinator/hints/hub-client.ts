/**
 * Asks hubs for subscriptions. The addresses of a hub come from feeds, that is from strangers: each name is looked up here, no
 * special-purpose address is connected to (unless the settings allow it), and the connection goes to the address that was
 * looked at. Bounded in time and bytes, two redirects at most (WebSub section 5.1), each as the first.
 */

import { Agent } from "undici";
import { urlTextOf } from "../core/ip/url-host.ts";
import {
  connectionWords,
  connectorTo,
  firstWords,
  type OutsideRules,
  outsideAddress,
} from "../web/outside-client.ts";
import { subscriptionForm } from "./web-sub.ts";

export type HubReply =
  /** The hub will verify it. */
  { readonly type: "accepted" } | { readonly type: "refused"; readonly words: string };

export interface HubClient {
  subscribe(request: {
    readonly hub: string;
    readonly callback: string;
    readonly topic: string;
    readonly secret: string;
  }): Promise<HubReply>;
}

export interface HubClientSettings extends OutsideRules {
  readonly userAgent: string;
  /** For one request as a whole. */
  readonly timeoutMs?: number;
  /** Who may have signed a hub's certificate, in PEM form; left out: the public authorities. */
  readonly authorities?: string;
}

const usualTimeoutMs = 10_000;
const mostRedirects = 2;

export function createHubClient(settings: HubClientSettings): HubClient {
  return {
    subscribe: async ({ hub, ...request }) => {
      const signal = AbortSignal.timeout(settings.timeoutMs ?? usualTimeoutMs);
      const body = subscriptionForm(request).toString();
      try {
        let at = hub;
        for (let redirects = 0; redirects <= mostRedirects; redirects += 1) {
          const answer = await post(at, body, signal, settings);
          if (answer.type !== "redirect") return answer;
          at = new URL(answer.location, at).href;
        }
        return { type: "refused", words: `more than ${mostRedirects} redirects` };
      } catch (error) {
        return { type: "refused", words: connectionWords(error) };
      }
    },
  };
}

async function post(
  hub: string,
  body: string,
  signal: AbortSignal,
  settings: HubClientSettings,
): Promise<HubReply | { readonly type: "redirect"; readonly location: string }> {
  const url = new URL(hub);
  const address = await outsideAddress(url, settings);
  if (typeof address !== "string") return { type: "refused", words: address.words };
  const connect = connectorTo(address, { ...settings, timeoutMs: usualTimeoutMs });
  const agent = new Agent({ connections: 1, pipelining: 1, connect });
  try {
    const {
      statusCode,
      headers,
      body: answer,
    } = await agent.request({
      origin: url.origin,
      path: `${url.pathname}${url.search}`,
      method: "POST",
      headers: {
        "content-type": "application/x-www-form-urlencoded",
        "user-agent": settings.userAgent,
      },
      body,
      signal,
    });
    if (statusCode >= 200 && statusCode < 300) return { type: "accepted" };
    const { location } = headers;
    if ((statusCode === 307 || statusCode === 308) && typeof location === "string")
      return { type: "redirect", location: urlTextOf(location) };
    const words = await firstWords(answer);
    return { type: "refused", words: `status ${statusCode}${words === "" ? "" : `: ${words}`}` };
  } finally {
    await agent.destroy();
  }
}
