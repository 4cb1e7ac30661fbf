/**
 * Parses a database URL as libpq does: `postgresql://user@h1:5432,h2:5433/name?target_session_attrs=read-write`. Hosts
 * and ports may also be in the query, where a folder means a socket. Several hosts are a primary and its standbys.
 */
import { UsageError } from "#core/errors";
import { canParseUrl } from "#core/ip/url-host";

export interface ServerPlace {
  /** Empty for libpq's default (PGHOST, localhost). A folder means a socket. */
  readonly host: string;
  readonly port: number | null;
  readonly name: string;
}

export interface ServerUrl {
  readonly servers: readonly ServerPlace[];
  /** True when the URL requires a server that accepts writes. */
  readonly wantsPrimary: boolean;
  /** The search path in `options`, as SQL. Null when there is none or it needs quoting. */
  readonly searchPath: string | null;
  readonly timeoutMs: number | null;
  readonly sessionName: string | null;
  /** The URL for node-postgres: a single server, without parameters that node-postgres does not know. */
  connectionString(server: ServerPlace): string;
}

/** Throws a UsageError that does not repeat the URL, which may contain a password. */
export function readServerUrl(databaseUrl: string): ServerUrl {
  const { url } = parse(databaseUrl);
  const servers = serversOf(databaseUrl);
  const attributes = url.searchParams.get("target_session_attrs");
  checkAttributes(attributes, servers.length);
  const options = readOptions(url.searchParams.get("options") ?? "");
  return {
    servers,
    wantsPrimary: servers.length > 1 || attributes === "read-write" || attributes === "primary",
    searchPath: options.searchPath,
    timeoutMs: timeoutOf(url.searchParams.get("connect_timeout")),
    sessionName: url.searchParams.get("application_name"),
    connectionString: (server) => connectionString(databaseUrl, { server, options: options.others }),
  };
}

/** Puts the schema first in the search path of every connection made with the URL, including psql's. */
export function withSearchPath(databaseUrl: string, schema: string): string {
  if (!/^[a-z_][a-z0-9_]{0,62}$/.test(schema))
    throw new UsageError(
      `schema "${schema}": lower-case letters, digits and underscores, at most 63, not starting with a digit`,
    );
  const { url, print } = parse(databaseUrl);
  const own = url.searchParams.get("options");
  url.searchParams.set("options", `${own === null ? "" : `${own} `}-c search_path=${schema},public`);
  // psql must connect to the primary, as this program does.
  if (serversOf(databaseUrl).length > 1 && !url.searchParams.has("target_session_attrs"))
    url.searchParams.set("target_session_attrs", "read-write");
  return print();
}

/** Sets the name under which the server lists sessions (`application_name`). `null` keeps the default name. */
export function withSessionName(databaseUrl: string, name: string | null): string {
  if (name === null) return databaseUrl;
  const { url, print } = parse(databaseUrl);
  url.searchParams.set("application_name", name);
  return print();
}

/** Removes the password, so that the URL can be shown to people. */
export function withoutPassword(databaseUrl: string): string {
  const { url, print } = parse(databaseUrl);
  if (url.password !== "") url.password = "";
  url.searchParams.delete("password");
  return print();
}

/** Temporarily replaces the list of hosts, which the WHATWG's rules do not accept as a host. */
const standIn = "several-hosts";

const hostPart = /^(\[[^\]]*\]|[^:[\]]*)(?::([^:]*))?$/;

/** Splits a URL into scheme and user, the list of hosts, and the rest. */
const urlParts = /^(postgres(?:ql)?:\/\/(?:[^/?#]*@)?)([^/?#]*)(.*)$/s;

interface ParsedUrl {
  readonly url: URL;
  readonly print: () => string;
}

/** Also accepts libpq's `user@/name?host=/folder`, which the WHATWG's rules do not accept as a URL. */
function parse(databaseUrl: string): ParsedUrl {
  const [, head = "", hosts = "", tail = ""] = urlParts.exec(databaseUrl) ?? [];
  const shown = hosts.includes(",") ? standIn : hosts === "" && head.endsWith("@") ? "localhost" : hosts;
  const text = `${head}${hostPart.exec(shown)?.[1] ?? ""}${tail}`;
  if (head === "" || !canParseUrl(text))
    throw new UsageError(
      "the database URL is not of the form postgresql://user:password@host:port/name, or host1:port1,host2:port2 for several",
    );
  const url = new URL(text);
  const [, host = "", port = ""] = shown === hosts ? (hostPart.exec(shown) ?? []) : [];
  if (port !== "") url.port = String(portNumber(port, host));
  const print = () => {
    // libpq reads %20, but not the "+" that searchParams writes for a space.
    url.search = url.search.replaceAll("+", "%20");
    return shown === standIn ? url.href.replace(standIn, hosts) : url.href;
  };
  return { url, print };
}

function serversOf(databaseUrl: string): readonly ServerPlace[] {
  const { searchParams } = parse(databaseUrl).url;
  const [, , listed = ""] = urlParts.exec(databaseUrl) ?? [];
  const given = (searchParams.get("host") || listed).split(",");
  const isQuery = Boolean(searchParams.get("host"));
  const ports = (searchParams.get("port") || "").split(",");
  if (ports.length > given.length || (ports.length > 1 && ports.length < given.length))
    throw new UsageError(
      `the database URL names ${ports.length} ports for ${given.length === 1 ? "one host" : `${given.length} hosts`}: one for each, or one for all`,
    );
  return given.map((text, index) => {
    const [, bare = "", ownPort = ""] = isQuery ? [text, text] : (hostPart.exec(text) ?? [text]);
    if (!isQuery && !hostPart.test(text))
      throw new UsageError(`the database URL: "${text}" is not host:port (IPv6 stands in brackets)`);
    const host = decoded(bare).replace(/^\[(.*)\]$/, "$1");
    if (host === "" && given.length > 1)
      throw new UsageError(`the database URL: host ${index + 1} of ${given.length} is empty`);
    const portText = (ports.length === 1 ? ports[0] : ports[index]) || ownPort;
    const port = portText === "" ? null : portNumber(portText, host);
    return { host, port, name: nameOf(host, port) };
  });
}

function nameOf(host: string, port: number | null): string {
  const shown = host.includes(":") ? `[${host}]` : host || "localhost";
  return port === null ? shown : `${shown}:${port}`;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new UsageError(`the database URL: the host "${text}" is wrongly encoded`);
  }
}

function portNumber(text: string, host: string): number {
  const port = Number(text);
  if (/^\d{1,5}$/.test(text) && port >= 1 && port <= 65_535) return port;
  throw new UsageError(
    `the database URL: port "${text}" of host "${host}": must be a number from 1 to 65535`,
  );
}

const knownAttributes = ["any", "read-write", "primary", "read-only", "standby", "prefer-standby"];

function checkAttributes(attributes: string | null, servers: number): void {
  if (attributes === null || attributes === "read-write" || attributes === "primary") return;
  const isKnown = knownAttributes.includes(attributes);
  if (attributes === "any" && servers === 1) return;
  throw new UsageError(
    isKnown
      ? `the database URL: target_session_attrs=${attributes} may lead to a standby, and nearcrawl writes: read-write or primary`
      : `the database URL: target_session_attrs=${attributes} is not known: read-write or primary`,
  );
}

function timeoutOf(text: string | null): number | null {
  if (text === null) return null;
  if (!/^\d{1,4}$/.test(text))
    throw new UsageError(`the database URL: connect_timeout=${text}: must be a number of seconds`);
  const seconds = Number(text);
  return seconds === 0 ? null : seconds * 1000;
}

/** Accepts lists of schema names that need no quoting. */
const searchPathOption = /(?:^|\s)(?:-c\s*|--)search_path=([a-z0-9_]+(?:,[a-z0-9_]+)*)(?=\s|$)/g;

function readOptions(options: string): { readonly searchPath: string | null; readonly others: string } {
  const found = [...options.matchAll(searchPathOption)].at(-1)?.[1] ?? null;
  return { searchPath: found, others: options.replace(searchPathOption, "").trim() };
}

function connectionString(
  databaseUrl: string,
  { server, options }: { readonly server: ServerPlace; readonly options: string },
): string {
  const { url } = parse(databaseUrl);
  for (const name of ["target_session_attrs", "connect_timeout", "options"]) url.searchParams.delete(name);
  if (options !== "") url.searchParams.set("options", options);
  if (server.host !== "") url.searchParams.set("host", server.host);
  if (server.port !== null) url.searchParams.set("port", String(server.port));
  url.search = url.search.replaceAll("+", "%20");
  return url.href;
}
