/** Where an index of OpenSearch is, from what operators write: an address with the index as its path. */
import { readFileSync } from "node:fs";
import { UsageError } from "#core/errors";
import type { OpenSearchPlace } from "./opensearch-http-client.ts";

const usualIndex = "nearcrawl-pages";

/** OpenSearch's rules for index names. */
const indexForm = /^[a-z0-9][a-z0-9_.+-]{0,254}$/;

interface Written {
  /** The names of the two settings or options. */
  readonly names: { readonly url: string; readonly ca: string };
  readonly url: string;
  /** A file with the authority that signed its certificate. */
  readonly ca: string | null;
  /** The header's value. */
  readonly authorization: string | null;
}

/** Throws a UsageError that names the setting. */
export function openSearchPlace({ names, url: text, ca, authorization }: Written): OpenSearchPlace {
  const url = urlOf(text);
  if (url === null || !/^https?:$/.test(url.protocol))
    throw new UsageError(
      `${names.url} ${text}: must be an address such as https://search.example.org:9200/pages`,
    );
  if (url.username !== "" || url.password !== "")
    throw new UsageError(
      `${names.url}: credentials belong into NEARCRAWL_OPENSEARCH_USER and NEARCRAWL_OPENSEARCH_PASSWORD, where nobody else on this machine reads them`,
    );
  const index = url.pathname.replace(/^\/|\/$/g, "") || usualIndex;
  if (url.search !== "" || url.hash !== "" || !indexForm.test(index))
    throw new UsageError(
      `${names.url} ${text}: "${index}${url.search}${url.hash}" is no name of an index: lower-case letters, digits, - _ . +`,
    );
  const isLoopback = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(url.hostname);
  if (authorization !== null && url.protocol !== "https:" && !isLoopback)
    throw new UsageError(`${names.url} ${url.origin}: credentials would go there unencrypted; use https`);
  const authorities = ca === null ? null : authoritiesIn(names.ca, ca);
  return { origin: url.origin, index, authorization, authorities };
}

function authoritiesIn(name: string, file: string): string {
  try {
    const text = readFileSync(file, "utf8");
    if (text.includes("-----BEGIN CERTIFICATE-----")) return text;
  } catch (error) {
    throw new UsageError(`${name} ${file}: cannot be read: ${(error as Error).message}`);
  }
  throw new UsageError(`${name} ${file}: has no certificate in PEM form`);
}

function urlOf(text: string): URL | null {
  try {
    return new URL(text);
  } catch {
    return null;
  }
}
