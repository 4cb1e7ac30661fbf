/**
 * Sends messages over the configured channels. A webhook is one POST, signed by Standard Webhooks (standardwebhooks.com,
 * version 1): HMAC-SHA256 over `id.timestamp.body`, so that neither time nor message can be replaced. Redirects are not
 * followed, because the message was signed for one receiver. Mail is plain text by SMTP. TLS is required and verified unless
 * the server is on this machine, and nodemailer reads no files and fetches no URLs.
 */
import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { createTransport } from "nodemailer";
import { Agent } from "undici";
import { ConfigError } from "#core/errors";
import { within } from "#core/timer-ms";
import {
  connectionWords,
  connectorTo,
  firstWords,
  type OutsideRules,
  outsideAddress,
} from "../../../web/outside-client.ts";
import {
  type AlertsSettings,
  type EmailSettings,
  secretBytes,
  type WebhookSettings,
} from "./alert-settings.ts";
import { type AlertChannelClient, type Delivery, mailText, type PagesUrl, webhookBody } from "./notices.ts";

interface ChannelPorts {
  readonly pages: PagesUrl;
  /** Time limit for a whole attempt. */
  readonly timeoutMs?: number;
  /** PEM certificates that may have signed the receiver's. Default: the public authorities. */
  readonly authorities?: string;
}

interface WebhookPorts extends ChannelPorts, Pick<OutsideRules, "resolver"> {
  readonly userAgent: string;
  readonly now: () => Date;
}

const webhookMs = 10_000;
const mailMs = 30_000;

/** Maximum length of a secret in a file. */
const mostSecretBytes = 4096;

/** Throws a ConfigError that lists every unusable secret file. */
export function alertChannels(
  { webhooks, email }: Pick<AlertsSettings, "webhooks" | "email">,
  ports: WebhookPorts,
): readonly AlertChannelClient[] {
  const faults: string[] = [];
  const channels = webhooks.flatMap((webhook, index) => {
    const at = `alerts.webhooks.${index}.secretFile`;
    const text = webhook.secret ?? readSecret(at, webhook.secretFile, faults);
    const secret = text === null ? null : secretBytes(text);
    if (secret !== null) return [webhookChannel(webhook, secret, ports)];
    if (text !== null)
      faults.push(`${at}: ${webhook.secretFile} holds no whsec_ and 24 to 64 bytes in base64`);
    return [];
  });
  if (email !== null) {
    const password = email.password ?? readSecret("alerts.email.passwordFile", email.passwordFile, faults);
    channels.push(emailChannel(email, password, ports));
  }
  if (faults.length > 0) throw new ConfigError(faults);
  return channels;
}

function readSecret(at: string, file: string | null, faults: string[]): string | null {
  if (file === null) return null;
  try {
    return readFileSync(file).toString("utf8", 0, mostSecretBytes).trim();
  } catch (error) {
    faults.push(`${at}: ${file} cannot be read (${(error as NodeJS.ErrnoException).code ?? String(error)})`);
    return null;
  }
}

export function webhookChannel(
  webhook: Pick<WebhookSettings, "name" | "url" | "least" | "allowSpecialPurpose">,
  secret: Uint8Array,
  { resolver, pages, userAgent, now, timeoutMs = webhookMs, authorities }: WebhookPorts,
): AlertChannelClient {
  const { name, least, allowSpecialPurpose } = webhook;
  const url = new URL(webhook.url);
  const send: AlertChannelClient["send"] = async (message, stopping) => {
    const signal = AbortSignal.any([stopping, AbortSignal.timeout(timeoutMs)]);
    const address = await outsideAddress(url, { resolver, allowSpecialPurpose });
    if (typeof address !== "string") return failed(address.words);
    const trusted = authorities === undefined ? {} : { authorities };
    const connect = connectorTo(address, { timeoutMs, ...trusted });
    const agent = new Agent({ connections: 1, pipelining: 1, connect });
    try {
      const body = webhookBody(message, pages);
      const timestamp = String(Math.floor(now().getTime() / 1000));
      const signed = `${message.id}.${timestamp}.${body}`;
      const { statusCode, body: answer } = await agent.request({
        ...{ origin: url.origin, path: `${url.pathname}${url.search}`, method: "POST", body, signal },
        headers: {
          "content-type": "application/json",
          "user-agent": userAgent,
          // Equal for all attempts.
          "webhook-id": message.id,
          "webhook-timestamp": timestamp,
          "webhook-signature": `v1,${createHmac("sha256", secret).update(signed).digest("base64")}`,
        },
      });
      if (statusCode >= 200 && statusCode < 300) return { type: "delivered" };
      if (statusCode >= 300 && statusCode < 400)
        return failed(`status ${statusCode}: redirects are not followed`);
      const words = await firstWords(answer);
      // 410 means that the receiver is gone.
      const isFinal = statusCode === 410;
      return { ...failed(`status ${statusCode}${words === "" ? "" : `: ${words}`}`), isFinal };
    } finally {
      await agent.destroy();
    }
  };
  // The path of a webhook is often its secret.
  return { name, kind: "webhook", least, place: url.host, send: orWhy(send, connectionWords) };
}

export function emailChannel(
  settings: Omit<EmailSettings, "password" | "passwordFile">,
  password: string | null,
  { pages, timeoutMs = mailMs, authorities }: ChannelPorts,
): AlertChannelClient {
  const { host, port, tls, user, from, to, least } = settings;
  const options = {
    ...{ host, port, secure: tls === "implicit", requireTLS: tls === "starttls", ignoreTLS: tls === "none" },
    ...(user === null || password === null ? {} : { auth: { user, pass: password } }),
    tls: { rejectUnauthorized: true, ...(authorities === undefined ? {} : { ca: authorities }) },
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
    dnsTimeout: timeoutMs,
    disableFileAccess: true,
    disableUrlAccess: true,
  };
  const send: AlertChannelClient["send"] = async (message, stopping) => {
    if (stopping.aborted) return failed("it was stopped");
    const transport = createTransport(options);
    const stop = () => transport.close();
    stopping.addEventListener("abort", stop, { once: true });
    try {
      const sending = transport.sendMail({
        ...mailText(message, pages),
        from: { name: "Nearcrawl", address: from },
        to: to.map((address) => ({ name: "", address })),
        date: message.madeAt,
        // Equal for all attempts, so that servers recognise a repetition.
        messageId: `<${message.id}@${from.slice(from.lastIndexOf("@") + 1)}>`,
        // RFC 3834: prevents automatic replies.
        headers: { "Auto-Submitted": "auto-generated" },
      });
      sending.catch(() => {});
      return (await within(timeoutMs, sending)) === null
        ? failed("no answer in time")
        : { type: "delivered" };
    } finally {
      stopping.removeEventListener("abort", stop);
      transport.close();
    }
  };
  const place = `${to.length === 1 ? "1 address" : `${to.length} addresses`} by ${host}`;
  return { name: "email", kind: "email", least, place, send: orWhy(send, smtpWords) };
}

function orWhy(
  send: AlertChannelClient["send"],
  words: (error: unknown) => string,
): AlertChannelClient["send"] {
  return async (message, stopping) => {
    try {
      return await send(message, stopping);
    } catch (error) {
      return failed(words(error));
    }
  };
}

const failed = (words: string): Delivery => ({ type: "failed", words });

/** A server's refusal, with its code. */
function smtpWords(error: unknown): string {
  const { response } = error as { readonly response?: unknown };
  const words = typeof response === "string" ? response : connectionWords(error);
  return words.replace(/[\s\p{Cc}]+/gu, " ").slice(0, 300);
}
