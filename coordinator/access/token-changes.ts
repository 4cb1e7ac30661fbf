/** Tokens made and revoked, as the audit log keeps them: without what they are. */
import type { Scope } from "#core/actor";
import type { Change } from "#core/audit";

export function tokenCreated(token: {
  readonly name: string;
  readonly scopes: readonly Scope[];
  readonly expiresAt: Date;
}): Change {
  const words = `Token ${token.name}, for ${token.scopes.join(", ")}, good until ${token.expiresAt.toISOString()}.`;
  return { action: "token-created", target: token.name, words, after: token };
}

export function tokenRevoked(name: string): Change {
  return { action: "token-revoked", target: name, words: `Token ${name} opens nothing any more.` };
}
