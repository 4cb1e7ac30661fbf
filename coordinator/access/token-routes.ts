/** /tokens: what programs may do over HTTP. For operators; a token's secret is shown once. */
import { z } from "zod";
import type { OperatorTokenStore } from "#core/access-types";
import { scopes } from "#core/actor";
import { cannotGive } from "#core/delegable-scopes";
import type { Secrets } from "../crawlers/admit-crawler.ts";
import type { WebPart } from "../http-server.ts";
import type { Visit } from "../web/access.ts";
import type { ActionFault, AskedAction, Outcome } from "../web/actions.ts";
import { tokenCreated, tokenRevoked } from "./token-changes.ts";
import { emptyTokenForm, madeTokenBody, type TokenForm, tokensBody } from "./tokens-page.ts";

export interface TokenRoutePorts {
  readonly tokens: Pick<OperatorTokenStore, "create" | "list" | "revoke">;
  readonly secrets: Secrets;
}

const tokenBody = z.strictObject({
  name: z
    .string()
    .regex(
      /^[a-z0-9][a-z0-9._-]{0,62}$/,
      "is lower-case letters, digits, dot, dash and underscore, at most 63",
    ),
  scopes: z.array(z.enum(scopes)).min(1, "choose at least one").max(scopes.length),
  days: z.number().min(0.01).max(3650).default(365),
});

const dayMs = 86_400_000;

export function tokenRoutes(ports: TokenRoutePorts): WebPart {
  return ({ views, actions }) => {
    views.add({
      path: "/tokens",
      api: "/api/tokens",
      section: null,
      needs: "access-write",
      view: async ({ now }) => {
        const tokens = await ports.tokens.list();
        const body = (visit: Visit) => tokensBody({ tokens, now }, emptyTokenForm, visit);
        return { status: 200, value: { tokens }, title: "Tokens", body };
      },
    });
    actions.add({
      path: "/tokens",
      api: "/api/tokens",
      section: null,
      needs: "access-write",
      // A form's faults are shown on it, with what was typed.
      body: z.looseObject({}),
      fromForm: (values) => ({
        name: (values.name ?? "").trim(),
        scopes: scopes.filter((scope) => values[`scope-${scope}`] !== undefined),
        days: Number(values.days),
      }),
      act: async (asked) => await create(asked, ports),
    });
    actions.add({
      path: "/tokens/:name/revoke",
      api: "/api/tokens/:name/revoke",
      section: null,
      needs: "access-write",
      body: z.strictObject({}),
      act: async ({ param, now }) => await revoke(param("name"), ports, now),
    });
  };
}

async function create(asked: AskedAction<Record<string, unknown>>, ports: TokenRoutePorts): Promise<Outcome> {
  const { actor, body, now } = asked;
  const checked = tokenBody.safeParse(body);
  if (!checked.success) return await notMade(faultWords(checked.error), asked, ports);
  const { name, scopes: given, days } = checked.data;
  const refused = cannotGive(actor, given);
  if (refused !== null) return { type: "fault", status: 403, title: "Not yours to give", words: refused };
  const { secret: token, hash: tokenHash } = ports.secrets.make("nco_");
  const expiresAt = new Date(now.getTime() + days * dayMs);
  const made = await ports.tokens.create({ name, scopes: given, tokenHash, createdAt: now, expiresAt });
  if (!made)
    return await notMade(`There is, or was, a token "${name}": take another name.`, asked, ports, 409);
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
  return { type: "fault", status, title: "No token was made", words, again };
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
    const words = `There is no good token "${name.slice(0, 80)}".`;
    return { type: "fault", status: 404, title: "Not there any more", words };
  }
  const change = tokenRevoked(name);
  return { type: "done", value: { name, revoked: true }, goTo: "/tokens", said: change.words, change };
}
