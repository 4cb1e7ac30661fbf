/** The section `alerts` of the coordinator's settings: who is notified, by which channels, and how often. */
import { z } from "zod";
import { parseRange } from "#core/ip/range";
import type { DeepReadonly } from "../../../core/policy.ts";
import { alertSeverities } from "../alert-facts.ts";

/** The lowest severity that a channel gets. */
const least = z.enum(alertSeverities).default("warning");

const channelName = z
  .string()
  .regex(/^[a-z0-9][a-z0-9-]{0,39}$/, "must be up to 40 lower-case letters, digits and dashes")
  .refine((name) => name !== "email", "is the name of the channel that alerts.email makes");

const specialRange = z
  .string()
  .max(100)
  .refine((text) => parseRange(text) !== null, {
    error: ({ input }) => `"${input}" is no range, such as 10.0.0.0/8`,
  });

const webhook = z
  .strictObject({
    name: channelName,
    url: z.url({ protocol: /^https?$/ }).max(2000),
    /** whsec_ and 24 to 64 bytes in base64 (Standard Webhooks), here or in a file that nobody else can read. */
    secret: z
      .string()
      .refine((text) => secretBytes(text) !== null, {
        error: "must be whsec_ and 24 to 64 bytes in base64, such as: echo whsec_$(openssl rand -base64 32)",
      })
      .nullable()
      .default(null),
    secretFile: z.string().min(1).max(4096).nullable().default(null),
    least,
    /** Whether receivers may have private addresses, or the ranges of those allowed. */
    allowSpecialPurpose: z.union([z.boolean(), z.array(specialRange).min(1).max(100)]).default(false),
  })
  .refine(({ secret, secretFile }) => (secret === null) !== (secretFile === null), {
    error:
      "needs a secret: in secret, secretFile or the environment (NEARCRAWL_WEBHOOK_SECRET_ and its name), and in one of them",
  });

/** An address without a name and without any character that could begin another header. */
const mailAddress = z
  .string()
  .max(254)
  .regex(/^[^\s"<>(),:;@[\]\\\p{Cc}]{1,64}@[^\s"<>(),:;@\\\p{Cc}]{1,190}$/u, {
    error: ({ input }) => `"${String(input).slice(0, 60)}" is no address such as ops@example.org`,
  });

const email = z
  .strictObject({
    host: z.string().min(1).max(253),
    port: z.int().min(1).max(65_535).default(587),
    /** `starttls` requires STARTTLS, `implicit` means TLS from the first byte (port 465), `none` is only for this machine. */
    tls: z.enum(["starttls", "implicit", "none"]).default("starttls"),
    user: z.string().min(1).max(300).nullable().default(null),
    password: z.string().min(1).max(1000).nullable().default(null),
    passwordFile: z.string().min(1).max(4096).nullable().default(null),
    from: mailAddress,
    to: z.array(mailAddress).min(1).max(50),
    least,
  })
  .superRefine(({ tls, host, user, password, passwordFile }, context) => {
    const fault = (message: string) => context.addIssue({ code: "custom", message });
    if (tls === "none" && !isThisMachine(host))
      fault(`${host} is another machine: mail to it needs TLS (tls = "starttls" or "implicit")`);
    if (password !== null && passwordFile !== null) fault("has both password and passwordFile");
    if ((user === null) !== (password === null && passwordFile === null))
      fault("needs user and password (password, passwordFile or NEARCRAWL_SMTP_PASSWORD), or neither");
  });

const isThisMachine = (host: string) =>
  host === "localhost" || host === "::1" || /^127(\.\d+){3}$/.test(host);

export const alertsSettings = z.strictObject({
  /** Alerts that begin or end within this time share a message. An alert that has ended by then is in none. */
  digestSeconds: z.number().min(0).max(3600).default(60),
  /** The shortest time after which an alert that flaps, or names more, is reported again. */
  againMinutes: z.number().min(0).max(1440).default(30),
  webhooks: z
    .array(webhook)
    .max(20)
    .default([])
    .refine((all) => new Set(all.map(({ name }) => name)).size === all.length, "has two of one name"),
  email: email.nullable().default(null),
});

export type AlertsSettings = DeepReadonly<z.infer<typeof alertsSettings>>;
export type WebhookSettings = AlertsSettings["webhooks"][number];
export type EmailSettings = NonNullable<AlertsSettings["email"]>;

const prefix = "whsec_";

/** Returns null unless the secret is the prefix and base64 of 24 to 64 bytes. */
export function secretBytes(secret: string): Buffer | null {
  const text = secret.startsWith(prefix) ? secret.slice(prefix.length) : "";
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(text)) return null;
  const bytes = Buffer.from(text, "base64");
  return bytes.length >= 24 && bytes.length <= 64 ? bytes : null;
}
