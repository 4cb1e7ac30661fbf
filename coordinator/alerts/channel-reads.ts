/** The channels that the settings name, with their secrets, which may stand in files. */
import { readFileSync } from "node:fs";
import { ConfigError } from "#core/errors";
import type { AlertsSettings } from "./alert-settings.ts";
import { emailChannel } from "./email-client.ts";
import type { AlertChannelClient } from "./message.ts";
import { secretBytes } from "./standard-webhook.ts";
import { type WebhookPorts, webhookChannel } from "./webhook-client.ts";

/** Longest secret in a file. */
const mostSecretBytes = 4096;

/** Throws a ConfigError that lists every file that cannot be used. */
export function alertChannels(
  { webhooks, email }: Pick<AlertsSettings, "webhooks" | "email">,
  ports: WebhookPorts,
): readonly AlertChannelClient[] {
  const faults: string[] = [];
  const channels: AlertChannelClient[] = [];
  for (const [index, webhook] of webhooks.entries()) {
    const at = `alerts.webhooks.${index}.secretFile`;
    const text = webhook.secret ?? readSecret(at, webhook.secretFile, faults);
    const secret = text === null ? null : secretBytes(text);
    if (secret !== null) channels.push(webhookChannel(webhook, secret, ports));
    else if (text !== null)
      faults.push(`${at}: ${webhook.secretFile} holds no whsec_ and 24 to 64 bytes in base64`);
  }
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
