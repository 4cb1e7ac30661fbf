/** Invitations: made, shown this once, listed, withdrawn. */

import { howMany } from "#core/format";
import { keyScopes } from "#protocol/identity";
import { invitationHours, invitationMade, issueInvitation } from "../access/invitations.ts";
import type { Actions, AskedAction, Outcome } from "../web/actions.ts";
import type { BodyOf } from "../web/api-operation.ts";
import { bytesOrNull, isName, noCrawler, numberOrNull, usageFault } from "../web/form-fields.ts";
import type { Views } from "../web/views.ts";
import type { FleetPorts } from "./fleet-store.ts";
import { invitationApi } from "./invitation-api.ts";
import {
  freshInvite,
  type InviteValues,
  invitationStepsBody,
  invitationsBody,
  inviteBody,
  invitedBody,
} from "./invitations-page.ts";

/** Somebody sits before it and waits. */
const refreshSeconds = 3;

type InvitationBody = BodyOf<typeof invitationApi.invite>;

export function addInvitationRoutes(views: Views, actions: Actions, ports: FleetPorts): void {
  views.describe({
    ...{ path: "/fleet/invitations", operation: invitationApi.invitations },
    view: async ({ now }) => {
      const invitations = await ports.invitations.list(now);
      const value = { invitations };
      return {
        status: 200,
        value,
        title: "Invitations",
        body: (visit) => invitationsBody(invitations, visit),
      };
    },
  });
  views.describe({
    ...{ path: "/fleet/invitations/:number", operation: invitationApi.invitation },
    view: async ({ param, now }) => {
      const number = param("number");
      const value = /^\d{1,9}$/.test(number) ? await ports.invitationProgress(Number(number), now) : null;
      if (value === null) return null;
      const isLive = value.waitsFor !== null && !value.isOver;
      return {
        status: 200,
        value,
        title: `Invitation of ${value.name}`,
        body: () => invitationStepsBody(value),
        ...(isLive ? { refreshSeconds } : {}),
      };
    },
  });
  views.describe({
    ...{ path: "/fleet/invite", operation: invitationApi.inviteBounds },
    view: async ({ query }) => {
      const renewed = query("renews");
      if (renewed !== "" && !isName(renewed)) return "renews: this is not a valid crawler name.";
      const values = renewed === "" ? freshInvite : { ...freshInvite, name: renewed, renews: true };
      const value = { scopes: keyScopes, expiresHours: invitationHours };
      return { status: 200, value, title: "Add a partner", body: (visit) => inviteBody(values, visit) };
    },
  });
  actions.describe({
    ...{ path: "/fleet/invite", operation: invitationApi.invite },
    fromForm: (values) => ({
      name: values.name ?? "",
      renews: values.renews === "yes",
      scopes: values.scopes === "probe" ? ["probe"] : [...keyScopes],
      pagesPerDay: numberOrNull(values.pagesPerDay),
      bytesPerDay: bytesOrNull(values.gigabytesPerDay),
      expiresHours: numberOrNull(values.expiresHours) ?? invitationHours.usual,
    }),
    refill: (values, visit, words) => inviteBody(asTyped(values), visit, words),
    act: async (asked) => await invite(asked, ports),
  });
  actions.describe({
    path: "/fleet/invitations/:number/revoke",
    operation: invitationApi.revokeInvitation,
    ...{ fromForm: () => ({}) },
    act: async ({ param, now }) => await withdraw(param("number"), ports, now),
  });
}

async function invite(asked: AskedAction<InvitationBody>, ports: FleetPorts): Promise<Outcome> {
  const { body, actor, now } = asked;
  const again = {
    again: (visit: Parameters<typeof inviteBody>[1], words: string) => inviteBody(typed(body), visit, words),
  };
  const coordinator = await ports.coordinator().catch((error: unknown) => usageFault(error, "Not from here"));
  if ("type" in coordinator) return { ...coordinator, ...again };
  const request = { ...body, createdBy: actor.name };
  const issued = await issueInvitation(request, { ...ports, coordinator }, now);
  if (issued === "no-such-crawler") return { ...noCrawler(body.name), ...again };
  if (issued === "name-taken") return { ...nameTaken(body.name), ...again };
  return {
    type: "shown",
    status: 201,
    value: issued,
    title: body.renews ? "Credentials reissued" : "Invited",
    body: () => invitedBody(issued),
    change: invitationMade(issued, request),
  };
}

/** What stood in the fields, whatever it was. */
function asTyped(values: Readonly<Record<string, string>>): InviteValues {
  const { name = "", pagesPerDay: pages = "", gigabytesPerDay = "", expiresHours = "" } = values;
  return {
    name,
    renews: values.renews === "yes",
    pagesPerDay: pages,
    gigabytesPerDay,
    expiresHours,
    probeOnly: values.scopes === "probe",
  };
}

function typed(body: InvitationBody): InviteValues {
  return {
    name: body.name,
    renews: body.renews,
    pagesPerDay: body.pagesPerDay === null ? "" : String(body.pagesPerDay),
    gigabytesPerDay: body.bytesPerDay === null ? "" : String(body.bytesPerDay / 1e9),
    expiresHours: String(body.expiresHours),
    probeOnly: !body.scopes.includes("crawl"),
  };
}

const nameTaken = (name: string) =>
  ({
    type: "fault",
    status: 409,
    title: "The name is taken",
    words: `A crawler named ${name} already exists. To reissue its credentials, open its page (API: "renews": true).`,
  }) as const;

async function withdraw(number: string, { invitations }: FleetPorts, now: Date): Promise<Outcome> {
  const revoked = /^\d{1,9}$/.test(number)
    ? await invitations.revoke({ invitationId: Number(number) }, now)
    : 0;
  if (revoked === 0) {
    const words = `Invitation ${number.slice(0, 20)} does not exist, or can no longer be used.`;
    return { type: "fault", status: 404, title: "Not known", words };
  }
  return {
    type: "done",
    value: { revoked },
    goTo: "/fleet/invitations",
    said: `Withdrawn: ${howMany(revoked, "invitation")}. A crawler that has joined with it stays.`,
    change: {
      action: "invitation-revoked",
      target: `invitation ${number}`,
      words: `Invitation ${number} was withdrawn.`,
    },
  };
}
