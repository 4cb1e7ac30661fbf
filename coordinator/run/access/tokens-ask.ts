/** The /tokens page, for operators: what programs may do over HTTP. A secret is shown only once. */
import { z } from "zod";
import type { OperatorToken, OperatorTokenStore, Secrets } from "#core/access-types";
import { cannotGive, type Scope, scopes } from "#core/actor";
import { UsageError } from "#core/errors";
import { code, column, form, lead, picture, table } from "../../ask/document.ts";
import { Fault, operationsOf } from "../../ask/operation.ts";
import { dateTime, nothingBody, record } from "../../web/api-operation.ts";
import { ago, instant } from "../../web/format.ts";
import { html } from "../../web/html.ts";

const scopeWords: Readonly<Record<Scope, string>> = {
  read: "the crawl, the index, who crawls what and why",
  "url-write": "submit URLs and have them fetched again",
  "site-recrawl": "have pages fetched again of sites whose DNS names this token",
  "metrics-read": "/metrics, for Prometheus",
  "fleet-read": "keys, invitations and incidents of the fleet",
  "fleet-write": "invite, rotate, drain, move, revoke",
  "registry-write": "plan, apply and roll back the registry",
  "policy-write": "the coordinator's policies",
  "audit-read": "who changed what",
  "access-write": "tokens, and other people's sign-in",
};

export const scope = z
  .enum(scopes)
  .meta({ id: "Scope", description: "What a token may do.", "x-enumDescriptions": scopeWords });

const token = record("Token", {
  name: z.string(),
  scopes: z.array(scope),
  createdAt: dateTime(),
  expiresAt: dateTime().nullable().describe("Null: it is revoked."),
  lastUsedAt: dateTime().nullable(),
  revokedAt: dateTime().nullable(),
});

interface TokenPorts {
  readonly tokens: Pick<OperatorTokenStore, "create" | "list" | "revoke">;
  readonly secrets: Secrets;
}

const dayMs = 86_400_000;
const tokenName = /^[a-z0-9][a-z0-9._-]{0,62}$/;
const { get, post } = operationsOf<TokenPorts>();

const createToken = post({
  ...{ path: "/api/tokens", needs: "access-write" },
  summary: "Create a token",
  description:
    "Scope access-write; grants only scopes that the caller has. The token is shown only in this answer.",
  input: z.object({
    name: z.string().trim().max(80).meta({
      title: "Name",
      description:
        "What it is for; shown in the audit log. Up to 63 lower-case letters, digits, dots, dashes and underscores.",
      example: "prometheus",
    }),
    scopes: z.array(scope).max(scopes.length).meta({ title: "Scopes", description: "One at least." }),
    days: z.number().min(0.01).max(3650).default(365).meta({ title: "Valid for (days)" }),
  }),
  output: record("CreatedToken", {
    ...{ name: z.string(), scopes: z.array(scope), expiresAt: dateTime(), token: z.string() },
  }),
  example: { name: "prometheus", scopes: ["metrics-read"], days: 365 },
  answer: { status: 201, description: "Created" },
  faults: { 409: "The name is or was in use", 422: "An invalid name, or no scope" },
  command: {
    ...{
      name: "operator-token create",
      says: "create a token and print it, only once",
      takes: "name",
      setsUp: true,
    },
    named: { scopes: "scope" },
    usual: () => ({ scopes: ["fleet-read", "fleet-write"] }),
  },
  run: async ({ input: { name, scopes: given, days }, ports, actor, now }) => {
    if (!tokenName.test(name))
      throw new UsageError(
        "name: must be lower-case letters, digits, dots, dashes and underscores, at most 63",
      );
    if (given.length === 0) throw new UsageError("scopes: choose at least one");
    const refused = cannotGive(actor, given);
    if (refused !== null) throw new Fault(403, refused, "Not allowed");
    const { secret, hash: tokenHash } = ports.secrets.make("nco_");
    const expiresAt = new Date(now.getTime() + days * dayMs);
    const made = { name, scopes: given, expiresAt };
    if (!(await ports.tokens.create({ ...made, tokenHash, createdAt: now })))
      throw new Fault(409, `The name "${name}" is or was in use: choose another.`, "Token not created");
    return { ...made, token: secret };
  },
  change: ({ token: _, ...made }) => ({
    ...{ action: "token-created", target: made.name, after: made },
    words: `Token ${made.name}, for ${made.scopes.join(", ")}, valid until ${made.expiresAt.toISOString()}.`,
  }),
  view: ({ name, scopes: given, expiresAt, token: secret }) => ({
    title: `Token ${name}`,
    nodes: [
      lead(
        html`Copy it now: it is not shown again. Valid for ${given.join(", ")}, until ${instant(expiresAt)}.`,
      ),
      code(secret),
      picture(html`<p><a href="/tokens">Back to tokens</a></p>`),
    ],
  }),
});

const revokeToken = post({
  ...{ path: "/api/tokens/{name}/revoke", needs: "access-write" },
  summary: "Revoke a token at once",
  input: nothingBody.extend({ name: z.string().describe("The token's name.") }),
  output: record("RevokedToken", { name: z.string(), revoked: z.boolean() }),
  example: {},
  faults: { 404: "No valid token of this name" },
  command: { name: "operator-token revoke", says: "revoke a token at once" },
  run: async ({ input: { name }, ports, now }) => {
    if (await ports.tokens.revoke(name, now)) return { name, revoked: true };
    throw new Fault(404, `There is no valid token "${name.slice(0, 80)}".`, "Not there any more");
  },
  change: ({ name }) => ({
    ...{ action: "token-revoked", target: name, words: `Token ${name} no longer works.` },
  }),
});

const tokens = get({
  ...{ path: "/api/tokens", needs: "access-write" },
  navigation: { group: null, entry: "Tokens" },
  alsoFound: "programs API",
  summary: "The tokens, and when each was last used",
  input: z.object({}),
  output: record("Tokens", { tokens: z.array(token) }),
  command: {
    name: "operator-token list",
    says: "the tokens, and when each was last used",
    group: {
      says: "tokens for operators' programs: invite, rotate and revoke crawlers over HTTP",
      help: `

Examples:
  nearcrawl operator-token create dashboard --scope fleet-read
  curl -H 'Authorization: Bearer TOKEN' COORDINATOR/api/fleet/invitations      (its address, as nearcrawl coordinator prints it)

What can be asked: /api/openapi.json`,
    },
  },
  run: async ({ ports }) => ({ tokens: await ports.tokens.list() }),
  view: ({ tokens: all }, { now }) => ({
    title: "Tokens",
    nodes: [
      lead(html`Programs show a token with each request: <code>Authorization: Bearer TOKEN</code>. What they can ask is on
<a href="/api">the API page</a>.`),
      table<OperatorToken>({
        ...{ label: "Tokens", rows: all },
        columns: [
          column("name", "Token", ({ name }) => name),
          column("state", "State", (one) => stateOf(one, now)),
          column("scopes", "Scopes", (one) => one.scopes.join(", ")),
          column("expires_at", "Valid until", ({ expiresAt }) => expiresAt ?? "revoked", { kind: "nowrap" }),
          column("last_used_at", "Last used", ({ lastUsedAt: at }) => at && ago(at, now.toISOString()), {
            ...{ kind: "nowrap", none: "never" },
            value: ({ lastUsedAt }) => lastUsedAt,
          }),
        ],
        empty: [
          "There are no tokens.",
          html`Create the first one below, or with <code>nearcrawl operator-token create NAME</code>.`,
        ],
        actions: (one) =>
          stateOf(one, now) === "valid"
            ? [{ operation: revokeToken, path: { name: one.name }, label: `Revoke ${one.name}` }]
            : [],
      }),
      form({ operation: createToken, title: "New token" }),
    ],
  }),
});

function stateOf({ revokedAt, expiresAt }: OperatorToken, now: Date): "valid" | "revoked" | "expired" {
  if (revokedAt !== null) return "revoked";
  return expiresAt !== null && expiresAt <= now ? "expired" : "valid";
}

export const tokenOperations = { tokens, createToken, revokeToken };
