/** /tokens: what programs may do over HTTP. For operators; a token's secret is shown once. */

import { z } from "zod";
import type { OperatorToken, OperatorTokenStore, Secrets } from "#core/access-types";
import { cannotGive, type Scope, scopes } from "#core/actor";
import type { Visit } from "../web/access.ts";
import type { ActionFault, AskedAction, Outcome, WebPart } from "../web/actions.ts";
import { addressOf } from "../web/api-operation.ts";
import { tableOf } from "../web/components.ts";
import { ago, instant } from "../web/format.ts";
import { type Html, html, nothing } from "../web/html.ts";
import { formToken, type PageViewer } from "../web/page-frame.ts";
import { accessApi, tokenRequest } from "./access-api.ts";
import { allScopes, scopeWords } from "./account-routes.ts";
import { tokenCreated, tokenRevoked } from "./token-store.ts";

interface TokenRoutePorts {
  readonly tokens: Pick<OperatorTokenStore, "create" | "list" | "revoke">;
  readonly secrets: Secrets;
}

const dayMs = 86_400_000;

export function tokenRoutes(ports: TokenRoutePorts): WebPart {
  return ({ views, actions }) => {
    views.describe({
      path: "/tokens",
      operation: accessApi.tokens,
      view: async ({ now }) => {
        const tokens = await ports.tokens.list();
        const body = (visit: Visit) => tokensBody({ tokens, now }, emptyTokenForm, visit);
        return { status: 200, value: { tokens }, title: "Tokens", body };
      },
    });
    actions.add({
      path: "/tokens",
      ...addressOf(accessApi.createToken),
      // A form's faults are shown on it, with what was typed.
      body: z.looseObject({}),
      fromForm: (values) => ({
        name: (values.name ?? "").trim(),
        scopes: scopes.filter((scope) => values[`scope-${scope}`] !== undefined),
        days: Number(values.days),
      }),
      act: async (asked) => await create(asked, ports),
    });
    actions.describe({
      path: "/tokens/:name/revoke",
      operation: accessApi.revokeToken,
      act: async ({ param, now }) => await revoke(param("name"), ports, now),
    });
  };
}

async function create(asked: AskedAction<Record<string, unknown>>, ports: TokenRoutePorts): Promise<Outcome> {
  const { actor, body, now } = asked;
  const checked = tokenRequest.safeParse(body);
  if (!checked.success) return await notMade(faultWords(checked.error), asked, ports);
  const { name, scopes: given, days } = checked.data;
  const refused = cannotGive(actor, given);
  if (refused !== null) return { type: "fault", status: 403, title: "Not allowed", words: refused };
  const { secret: token, hash: tokenHash } = ports.secrets.make("nco_");
  const expiresAt = new Date(now.getTime() + days * dayMs);
  const made = await ports.tokens.create({ name, scopes: given, tokenHash, createdAt: now, expiresAt });
  if (!made) return await notMade(`The name "${name}" is or was in use: choose another.`, asked, ports, 409);
  return {
    type: "shown",
    status: 201,
    value: { name, scopes: given, expiresAt, token },
    title: "A token",
    body: () => madeTokenBody({ name, scopes: given, expiresAt, token }),
    change: tokenCreated({ name, scopes: given, expiresAt }),
  };
}

async function notMade(
  words: string,
  { body, now }: AskedAction<Record<string, unknown>>,
  ports: TokenRoutePorts,
  status: 409 | 422 = 422,
): Promise<ActionFault> {
  const tokens = await ports.tokens.list();
  const form: TokenForm = { ...typed(body), fault: words };
  const again = (visit: Visit) => tokensBody({ tokens, now }, form, visit);
  return { type: "fault", status, title: "Token not created", words, again };
}

function typed({ name, scopes: chosen, days }: Record<string, unknown>): Omit<TokenForm, "fault"> {
  return {
    name: typeof name === "string" ? name.slice(0, 80) : "",
    scopes: Array.isArray(chosen) ? chosen.map(String) : [],
    days: typeof days === "number" && Number.isFinite(days) ? days : emptyTokenForm.days,
  };
}

function faultWords(error: z.ZodError): string {
  return error.issues.map(({ path, message }) => `${path.join(".") || "body"}: ${message}`).join("; ");
}

async function revoke(name: string, { tokens }: TokenRoutePorts, now: Date): Promise<Outcome> {
  if (!(await tokens.revoke(name, now))) {
    const words = `There is no valid token "${name.slice(0, 80)}".`;
    return { type: "fault", status: 404, title: "Not there any more", words };
  }
  const change = tokenRevoked(name);
  return { type: "done", value: { name, revoked: true }, goTo: "/tokens", said: change.words, change };
}

interface TokenForm {
  readonly name: string;
  readonly scopes: readonly string[];
  readonly days: number;
  readonly fault: string | null;
}

const emptyTokenForm: TokenForm = { name: "", scopes: [], days: 365, fault: null };

function tokensBody(
  { tokens, now }: { readonly tokens: readonly OperatorToken[]; readonly now: Date },
  form: TokenForm,
  viewer: PageViewer,
): Html {
  return html`<h1>Tokens</h1>
<p class="lead">Programs show a token with each request: <code>Authorization: Bearer TOKEN</code>. What they can ask is on <a href="/api">the API page</a>.</p>
${tokens.length === 0 ? noTokens : tokenTable(tokens, now, viewer)}
<section id="new"><h2>New token</h2>${viewer.formToken === null ? noForm : tokenForm(form, viewer)}</section>`;
}

const noTokens = html`<div class="empty"><p>There are no tokens. Create the first one below, or with
<code>nearcrawl operator-token create NAME</code>.</p></div>`;
const noForm = html`<p>Sign in to create one, or run <code>nearcrawl operator-token create NAME --scope SCOPE</code>.</p>`;

function tokenTable(tokens: readonly OperatorToken[], now: Date, viewer: PageViewer): Html {
  const heads = ["Token", "State", "Scopes", "Valid until .nowrap", "Last used .nowrap", "(Action)"];
  return tableOf("Tokens", heads, tokens, (token) => {
    const { name, scopes, lastUsedAt, expiresAt } = token;
    const state = stateOf(token, now);
    return [
      ...[name, state, scopes.join(", "), expiresAt === null ? "revoked" : instant(expiresAt)],
      lastUsedAt === null ? "never" : ago(lastUsedAt, now.toISOString()),
      state === "valid" && viewer.formToken !== null ? revokeButton(name, viewer) : nothing,
    ];
  });
}

function stateOf({ revokedAt, expiresAt }: OperatorToken, now: Date): "valid" | "revoked" | "expired" {
  if (revokedAt !== null) return "revoked";
  return expiresAt !== null && expiresAt <= now ? "expired" : "valid";
}

function revokeButton(name: string, viewer: PageViewer): Html {
  return html`<form method="post" action="/tokens/${encodeURIComponent(name)}/revoke">${formToken(viewer)}<button
class="slim quiet">Revoke<span class="hidden"> ${name}</span></button></form>`;
}

function tokenForm(form: TokenForm, viewer: PageViewer): Html {
  return html`<form class="form" method="post" action="/tokens#new">${formToken(viewer)}
${form.fault === null ? nothing : html`<p class="fault" role="alert">${form.fault}</p>`}
<div><label for="token-name">Name</label><p class="small" id="token-name-hint">What it is for, such as prometheus; shown in the audit log.</p>
<input id="token-name" name="name" value="${form.name}" maxlength="63" required autocomplete="off" spellcheck="false" aria-describedby="token-name-hint"></div>
<fieldset><legend>Scopes</legend>${allScopes.map((scope) => scopeChoice(scope, form))}</fieldset>
<div><label for="token-days">Valid for (days)</label><input class="number" id="token-days" name="days" type="number"
min="1" max="3650" value="${form.days}" required></div>
<button>Create token</button></form>`;
}

function scopeChoice(scope: Scope, form: TokenForm): Html {
  return html`<label class="choice"><input type="checkbox" name="scope-${scope}"${
    form.scopes.includes(scope)
      ? html`
checked`
      : nothing
  }><span>${scope} <span class="small">${scopeWords[scope]}</span></span></label>`;
}

/** Shown this once. */
function madeTokenBody(made: {
  readonly name: string;
  readonly scopes: readonly Scope[];
  readonly expiresAt: Date;
  readonly token: string;
}): Html {
  return html`<h1>Token ${made.name}</h1>
<p class="lead">Copy it now: it is not shown again. Valid for ${made.scopes.join(", ")}, until ${instant(made.expiresAt)}.</p>
<pre><code>${made.token}</code></pre>
<p><a href="/tokens">Back to tokens</a></p>`;
}
