/**
 * Who may do what. A *role* is what people have, a *scope* what a token (or a route) is good for; a role is a set of
 * scopes. A partner has none of its own: it sees and steers the crawlers that it hosts, and nothing else.
 */
export const roles = ["partner", "staff", "operator"] as const;

export type Role = (typeof roles)[number];

/**
 * read: the crawl, the index, who crawls what and why. url-write: hand in URLs. site-recrawl: have pages fetched again of sites that
 * name the token in DNS, as partners do for their own servers; url-write includes it.
 * fleet-*: keys, invitations, budgets, incidents, trust. registry-write: plan, apply, roll back. policy-write: the coordinator's
 * settings. access-write: tokens and others' sign-in. audit-read: who changed what. metrics-read: /metrics.
 */
export const scopes = [
  "read",
  "url-write",
  "site-recrawl",
  "metrics-read",
  "fleet-read",
  "fleet-write",
  "registry-write",
  "policy-write",
  "audit-read",
  "access-write",
] as const;

export type Scope = (typeof scopes)[number];

export const scopesOf: Readonly<Record<Role, readonly Scope[]>> = {
  partner: [],
  staff: ["read", "url-write"],
  operator: scopes,
};

/** Whoever sends a request. */
export interface Actor {
  /** As the audit log names it: `anna`, `token dashboard`; `anybody` when nobody has signed in. */
  readonly name: string;
  /** `program`: it showed a token; `anybody`: it showed nothing. */
  readonly role: Role | "program" | "anybody";
  readonly scopes: readonly Scope[];
  /** Names of the crawlers that a partner hosts. */
  readonly crawlers: readonly string[];
}

/** Nobody has signed in; `mayRead`: the pages are open to whoever reaches them. */
export function anybody(mayRead: boolean): Actor {
  return { name: "anybody", role: "anybody", scopes: mayRead ? ["read", "metrics-read"] : [], crawlers: [] };
}

/** `crawler`: the one that this is about; a partner may, when it is its own and `partnersToo`. */
export function mayDo(
  actor: Actor,
  scope: Scope | null,
  own: { readonly crawler: string; readonly partnersToo: boolean } | null = null,
): boolean {
  if (scope === null || actor.scopes.includes(scope)) return true;
  if (scope === "site-recrawl" && actor.scopes.includes("url-write")) return true;
  return own?.partnersToo === true && actor.role === "partner" && actor.crawlers.includes(own.crawler);
}

// Nobody gives to others what they may not do themselves.

/** A sentence that says what is missing; null: nothing is. */
export function cannotGive(actor: Actor, given: readonly Scope[]): string | null {
  const missing = given.filter((scope) => !actor.scopes.includes(scope));
  return missing.length === 0
    ? null
    : `${actor.name} cannot grant scopes that it does not have: ${missing.join(", ")}.`;
}

/** A partner steers its crawlers, as fleet-write does all of them. */
export function scopesOfPerson({ role }: Pick<Person, "role">): readonly Scope[] {
  return role === "partner" ? ["fleet-write"] : scopesOf[role];
}

/** Whom a link signs in, and so whose session it is. */
export interface Person {
  /** As the audit log names them. */
  readonly name: string;
  readonly role: Role;
  /** Names of the crawlers that a partner hosts; empty for others. */
  readonly crawlers: readonly string[];
}
