/** The tiny world with the stores of invitations and keys, and a way to invite. */

import { createIdentityStore } from "#coordinator/place/crawlers/identity-store";
import { createInvitationStore } from "#coordinator/place/crawlers/invitation-store";
import { randomSecrets } from "#coordinator/web/secrets";
import type { KeyScope } from "#protocol/identity";
import { newWorld } from "../support/store-world.ts";

export const invitedScopes: readonly KeyScope[] = ["probe", "crawl"];

export interface Invited {
  readonly name: string;
  readonly createdAt: Date;
  readonly expiresAt: Date;
  readonly renews?: boolean;
  readonly pagesPerDay?: number;
}

export async function newIdentityWorld() {
  const world = await newWorld();
  const invitations = createInvitationStore(world.pool);
  return {
    ...world,
    identities: createIdentityStore(world.pool),
    invitations,
    invite: async (invited: Invited) => {
      const { secret, hash: secretHash } = randomSecrets.make("inv_");
      const limits = { pagesPerDay: null, bytesPerDay: null };
      const by = { scopes: invitedScopes, createdBy: "test", secretHash };
      const made = await invitations.create({ renews: false, ...limits, ...by, ...invited });
      return { secret, secretHash, made };
    },
    /** What the tests of these stores write. */
    forget: async () =>
      await world.pool.query("delete from invitation; delete from operator_token; delete from crawler"),
  };
}

export type IdentityWorld = Awaited<ReturnType<typeof newIdentityWorld>>;
