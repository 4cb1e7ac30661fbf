/**
 * Sends alerts to a webhook: one POST, signed (alerts/standard-webhook), bounded in time and bytes. Redirects are not followed: what
 * was signed for one receiver is not for another.
 */
import { Agent } from "undici";
import {
  connectionWords,
  connectorTo,
  firstWords,
  type OutsideRules,
  outsideAddress,
} from "../web/outside-client.ts";
import type { WebhookSettings } from "./alert-settings.ts";
import {
  type AlertChannelClient,
  type AlertMessage,
  type Delivery,
  type PagesUrl,
  webhookBody,
} from "./message.ts";
import { webhookHeaders } from "./standard-webhook.ts";

export interface WebhookPorts extends Pick<OutsideRules, "resolver"> {
  readonly pages: () => PagesUrl;
  readonly userAgent: string;
  readonly now: () => Date;
  /** For one attempt as a whole. */
  readonly timeoutMs?: number;
  /** Who may have signed the receiver's certificate, in PEM form; left out: the public authorities. */
  readonly authorities?: string;
}

const usualTimeoutMs = 10_000;

export function webhookChannel(
  {
    name,
    url,
    least,
    allowSpecialPurpose,
  }: Pick<WebhookSettings, "name" | "url" | "least" | "allowSpecialPurpose">,
  secret: Uint8Array,
  ports: WebhookPorts,
): AlertChannelClient {
  const receiver = new URL(url);
  const rules = { resolver: ports.resolver, allowSpecialPurpose };
  return {
    ...{ name, kind: "webhook", least },
    // The path of a webhook is often its secret.
    place: receiver.host,
    send: async (message, signal) => {
      try {
        const timeout = AbortSignal.timeout(ports.timeoutMs ?? usualTimeoutMs);
        const address = await outsideAddress(receiver, rules);
        if (typeof address !== "string") return failed(address.words);
        return await post(receiver, address, message, {
          ...ports,
          secret,
          signal: AbortSignal.any([signal, timeout]),
        });
      } catch (error) {
        return failed(connectionWords(error));
      }
    },
  };
}

async function post(
  url: URL,
  address: string,
  message: AlertMessage,
  ports: WebhookPorts & { readonly secret: Uint8Array; readonly signal: AbortSignal },
): Promise<Delivery> {
  const timeoutMs = ports.timeoutMs ?? usualTimeoutMs;
  const { authorities } = ports;
  const connect = connectorTo(address, { timeoutMs, ...(authorities === undefined ? {} : { authorities }) });
  const agent = new Agent({ connections: 1, pipelining: 1, connect });
  try {
    const body = webhookBody(message, ports.pages());
    const answer = await agent.request({
      ...{ origin: url.origin, path: `${url.pathname}${url.search}`, method: "POST", body },
      headers: {
        "content-type": "application/json",
        "user-agent": ports.userAgent,
        ...webhookHeaders({ id: message.id, body }, ports.secret, ports.now()),
      },
      signal: ports.signal,
    });
    const { statusCode } = answer;
    if (statusCode >= 200 && statusCode < 300) return { type: "delivered" };
    if (statusCode >= 300 && statusCode < 400)
      return failed(`status ${statusCode}: redirects are not followed`);
    const words = await firstWords(answer.body);
    const refusal = `status ${statusCode}${words === "" ? "" : `: ${words}`}`;
    // Gone (Standard Webhooks): the receiver is there no longer.
    return { ...failed(refusal), ...(statusCode === 410 ? { isFinal: true } : {}) };
  } finally {
    await agent.destroy();
  }
}

const failed = (words: string) => ({ type: "failed", words }) as const;
