/** Where the coordinator's settings file is, how it is read, and how `nearcrawl init` writes it. */
import { join } from "node:path";
import { parse, stringify } from "smol-toml";
import { type CoordinatorConfig, readCoordinatorConfig } from "#coordinator/config";
import { ConfigError } from "#core/errors";
import { placedFaults, readSettingsFile } from "#crawler/settings/settings-file";
import { readServerUrl } from "#db/server-url";

/**
 * Returns the coordinator's settings, not yet validated, without `databaseUrl`, which commands read themselves
 * (command-context). Throws a ConfigError that names the file and the line.
 */
export function readCoordinatorSettings(
  file: string | null,
  environment: NodeJS.ProcessEnv = process.env,
): Record<string, unknown> {
  if (file === null) return {};
  const { databaseUrl: _, ...settings } = readSettingsFile(file);
  return withAlertSecrets(settings, environment);
}

/** Adds alert secrets from the environment, so that no file needs them. Malformed settings pass through to validation. */
function withAlertSecrets(
  settings: Record<string, unknown>,
  environment: NodeJS.ProcessEnv,
): Record<string, unknown> {
  const { alerts } = settings;
  if (!isTable(alerts)) return settings;
  const { webhooks, email } = alerts;
  const { NEARCRAWL_SMTP_PASSWORD: password } = environment;
  const withSecret = (webhook: unknown) => {
    if (!isTable(webhook) || typeof webhook.name !== "string") return webhook;
    const secret = environment[webhookSecretVariable(webhook.name)];
    return secret ? { ...webhook, secret, secretFile: null } : webhook;
  };
  return {
    ...settings,
    alerts: {
      ...alerts,
      ...(Array.isArray(webhooks) ? { webhooks: webhooks.map(withSecret) } : {}),
      ...(isTable(email) && password ? { email: { ...email, password, passwordFile: null } } : {}),
    },
  };
}

const isTable = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const webhookSecretVariable = (name: string) =>
  `NEARCRAWL_WEBHOOK_SECRET_${name.toUpperCase().replaceAll("-", "_")}`;

/** Adds line numbers to the faults that `check` finds in the settings of a file. */
export function withPlaces<T>(file: string | null, check: () => T): T {
  try {
    return check();
  } catch (error) {
    throw file === null ? error : placedFaults(error, file);
  }
}

/**
 * What new crawls use in place of the defaults. The defaults themselves stay, because existing crawls began with them. With as
 * many fetches, *optimal* keeps more of the index fresh than one interval for all pages does (test/bench/results/recrawl.md and
 * sarss.md). Ordering by back-links fetches more of the important pages early (test/bench/results/anansi.md; web-sailor.md
 * measures a smaller gain on a small web), although a lease costs twice as much (leases.md). PageRank would fetch slightly
 * more, but only once somebody computes it.
 */
export const ofNewCrawls = {
  recrawl: { strategy: "optimal" },
  frontier: { order: "back-links" },
} as const;

export const scopeNames = ["these-sites", "follow-links"] as const;
export type ScopeName = (typeof scopeNames)[number];

export interface InitAnswers {
  readonly contact: string | null;
  readonly publicUrl: string | null;
  readonly listen: { readonly host: string; readonly port: number };
  readonly tls: { readonly certificateFile: string; readonly keyFile: string } | null;
  readonly behindProxy: boolean;
  readonly databaseUrl: string | null;
  readonly resolvers: readonly string[];
  readonly scope: ScopeName;
}

/** The file's text, verified to parse back to these answers. Throws a ConfigError for answers that are impossible. */
export function settingsText(answers: InitAnswers): {
  readonly text: string;
  readonly config: CoordinatorConfig;
} {
  const { contact, publicUrl, listen, tls, behindProxy, databaseUrl, resolvers, scope } = answers;
  const line = (name: string, value: unknown) => stringify({ [name]: value }).trimEnd();
  const orExample = (name: string, value: unknown, example: unknown) =>
    value === null ? `# ${line(name, example)}` : line(name, value);
  const text = `# The coordinator of Nearcrawl. What is left out has its default; every setting: ops/runbook/settings.md.
# After a change: nearcrawl doctor, then restart the coordinator. Policies (nearcrawl policy) change while it runs.

# Whom webmasters can write to: an e-mail address or a URL. Every request to a site names it, or the page at publicUrl.
${orExample("contact", contact, "noc@example.org")}

# Where partners and sites reach this coordinator. Its /about-crawler is the page that requests name.
${orExample("publicUrl", publicUrl, "https://search.example.org")}

# True: something in front (nginx, Caddy) does TLS and passes X-Forwarded-For on.
${line("behindProxy", behindProxy)}

# A Postgres server, 15 to 18; several hosts, a primary and its standbys: host1:5432,host2:5432 (ops/runbook/high-availability.md).
# Left out: an embedded one beside this file. It may hold a password, so nobody else reads this file.
${orExample("databaseUrl", databaseUrl, "postgres://nearcrawl:PASSWORD@db.example.org/nearcrawl")}

# DNS servers, as address:port. Left out: the system's.
${orExample("resolvers", resolvers.length === 0 ? null : resolvers, ["192.0.2.53:53"])}

[scope]
# A policy, as those of [recrawl] and [frontier]: it changes while the coordinator runs (nearcrawl policy set scope.admitNewHosts=yes).
# False: these sites only, those of URLs that are submitted; links to others are kept in the web graph and not followed.
# True: links to other hosts are followed, maxDepth links from a seed at most.
${line("admitNewHosts", scope === "follow-links")}

[recrawl]
# Each page at the rate that keeps most of the index fresh, with as many fetches as one every intervalHours for all.
# "fixed": every page after intervalHours.
${line("strategy", ofNewCrawls.recrawl.strategy)}

[frontier]
# Which URLs of a host come first: those with the most links. "breadth-first": those due longest.
${line("order", ofNewCrawls.frontier.order)}

[listen]
# Beyond loopback it needs [tls], or behindProxy.
${line("host", listen.host)}
${line("port", listen.port)}

${tls === null ? "# [tls]" : "[tls]"}
# Renew the certificate with the same key (certbot renew --reuse-key): it is shown within a minute.
${orExample("certificateFile", tls?.certificateFile ?? null, "/etc/nearcrawl/certificate.pem")}
${orExample("keyFile", tls?.keyFile ?? null, "/etc/nearcrawl/key.pem")}
`;
  const { databaseUrl: _, ...settings } = parse(text);
  return { text, config: readCoordinatorConfig(settings) };
}

/** Where `init` writes the unit. */
export const unitFile = (home: string) => join(home, "nearcrawl-coordinator.service");

/** Throws a ConfigError when the text is not a database URL. */
export function checkedDatabaseUrl(url: string): string {
  try {
    readServerUrl(url);
    return url;
  } catch (error) {
    throw new ConfigError([`databaseUrl: ${(error as Error).message}`]);
  }
}
