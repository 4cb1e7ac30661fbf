/**
 * Sends alerts by SMTP (RFC 5321), as plain text. TLS is needed and checked unless the server is on this machine. Nodemailer
 * makes the message (RFC 5322) and holds the conversation; it reads no file and fetches no URL for it.
 */
import { createTransport } from "nodemailer";
import { within } from "#core/within";
import { connectionWords } from "../web/outside-client.ts";
import type { EmailSettings } from "./alert-settings.ts";
import { type AlertChannelClient, type AlertMessage, mailText, type PagesUrl } from "./message.ts";

export interface EmailPorts {
  readonly pages: () => PagesUrl;
  /** For one attempt as a whole. */
  readonly timeoutMs?: number;
  /** Who may have signed the server's certificate, in PEM form; left out: the public authorities. */
  readonly authorities?: string;
}

const usualTimeoutMs = 30_000;

export function emailChannel(
  settings: Omit<EmailSettings, "password" | "passwordFile">,
  password: string | null,
  ports: EmailPorts,
): AlertChannelClient {
  const { host, to, least } = settings;
  const timeoutMs = ports.timeoutMs ?? usualTimeoutMs;
  return {
    ...{ name: "email", kind: "email", least },
    place: `${to.length === 1 ? "1 address" : `${to.length} addresses`} by ${host}`,
    send: async (message, signal) => {
      const transport = createTransport(transportOptions(settings, password, { ...ports, timeoutMs }));
      const stop = () => transport.close();
      signal.addEventListener("abort", stop, { once: true });
      try {
        if (signal.aborted) return { type: "failed", words: "it was stopped" };
        const sending = transport.sendMail(mail(settings, message, ports.pages()));
        const sent = await within(timeoutMs, sending);
        if (sent !== null) return { type: "delivered" };
        sending.catch(() => {});
        return { type: "failed", words: "no answer in time" };
      } catch (error) {
        return { type: "failed", words: smtpWords(error) };
      } finally {
        signal.removeEventListener("abort", stop);
        transport.close();
      }
    },
  };
}

function transportOptions(
  { host, port, tls, user }: Omit<EmailSettings, "password" | "passwordFile">,
  password: string | null,
  { timeoutMs, authorities }: EmailPorts & { readonly timeoutMs: number },
) {
  return {
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
}

function mail({ from, to }: Pick<EmailSettings, "from" | "to">, message: AlertMessage, pages: PagesUrl) {
  const { subject, text } = mailText(message, pages);
  const domain = from.slice(from.lastIndexOf("@") + 1);
  return {
    from: { name: "Nearcrawl", address: from },
    to: to.map((address) => ({ name: "", address })),
    ...{ subject, text },
    date: message.madeAt,
    // The same at each attempt: servers that know it show it once.
    messageId: `<${message.id}@${domain}>`,
    // RFC 3834: nobody's absence is to answer it.
    headers: { "Auto-Submitted": "auto-generated" },
  };
}

/** A server's refusal, with its code. */
function smtpWords(error: unknown): string {
  const { response } = error as { readonly response?: unknown };
  const words = typeof response === "string" ? response : connectionWords(error);
  return words.replace(/[\s\p{Cc}]+/gu, " ").slice(0, 300);
}
