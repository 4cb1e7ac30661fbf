/** From the operator's settings to those of the HTTP client: who we say we are, proxy, trusted authorities. */
import { readFile } from "node:fs/promises";
import { ConfigError } from "#core/errors";
import type { HttpSettings } from "./http-client.ts";
import { readSecret } from "./secret-file.ts";
import type { SourceSettings } from "./source-settings.ts";

export async function httpSettings(settings: SourceSettings, version: string): Promise<HttpSettings> {
  const { proxy, proxyAuthorizationFile, certificateFile, contact, limits } = settings;
  return {
    userAgent: registryUserAgent(version, contact),
    proxy:
      proxy === null ? null : { url: proxy, authorization: await optionalSecret(proxyAuthorizationFile) },
    certificates: certificateFile === null ? [] : [await readCertificates(certificateFile)],
    redirects: limits.redirects,
  };
}

/** `Nearcrawl/0.1.0 (registry refresh; +noc@example.org)`; without a contact it says so. */
export function registryUserAgent(version: string, contact: string | null): string {
  return `Nearcrawl/${version} (registry refresh; ${contact === null ? "no contact given" : `+${contact}`})`;
}

async function optionalSecret(file: string | null): Promise<string | null> {
  return file === null ? null : await readSecret(file);
}

async function readCertificates(file: string): Promise<string> {
  const text = await readFile(file, "utf8").catch((error: Error) => {
    throw new ConfigError([`${file}: the certificates cannot be read: ${error.message}`]);
  });
  if (!text.includes("-----BEGIN CERTIFICATE-----"))
    throw new ConfigError([`${file}: holds no PEM certificate`]);
  return text;
}
