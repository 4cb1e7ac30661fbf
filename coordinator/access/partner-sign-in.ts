/** A link by which a crawler's partner signs in: shown this once to the operator who makes it. */
import { z } from "zod";
import { linkMinutes } from "#core/access-types";
import { cannotGive, scopesOfPerson } from "#core/delegable-scopes";
import { type FleetPorts, noCrawler, numberOrNull, usageFault } from "../fleet/ports.ts";
import type { Actions, Outcome } from "../web/actions.ts";
import { partnerLinkBody } from "./partner-link-page.ts";
import { issueSignInLink, linkIssued } from "./sign-in.ts";

const linkBody = z.strictObject({
  person: z.string().min(1).max(63),
  minutes: z.int().min(linkMinutes.least).max(linkMinutes.most).default(linkMinutes.most),
});

export function addPartnerSignIn(actions: Actions, ports: FleetPorts): void {
  actions.add({
    path: "/crawlers/:name/sign-in-link",
    api: "/api/fleet/crawlers/:name/sign-in-link",
    ...{ section: "/fleet", needs: "access-write", body: linkBody },
    fromForm: ({ person = "", minutes }) => ({
      person: person.trim(),
      minutes: numberOrNull(minutes) ?? linkMinutes.most,
    }),
    act: async ({ body, actor, param, now }) => {
      const words = cannotGive(actor, scopesOfPerson({ role: "partner" }));
      if (words !== null) return { type: "fault", status: 403, title: "Not yours to give", words };
      return await makeLink({ ...body, name: param("name"), issuedBy: actor.name }, ports, now);
    },
  });
}

async function makeLink(
  asked: z.infer<typeof linkBody> & { readonly name: string; readonly issuedBy: string },
  ports: FleetPorts,
  now: Date,
): Promise<Outcome> {
  const { name, person, minutes, issuedBy } = asked;
  if ((await ports.reads.crawler(name, now)) === null) return noCrawler(name);
  const webUrl = await ports.webUrl();
  if (webUrl === null) return notStarted;
  const wanted = { name: person, role: "partner", crawlers: [name], minutes, issuedBy } as const;
  const link = await issueSignInLink(wanted, { ...ports, webUrl }, now).catch((error: unknown) =>
    usageFault(error, "That cannot be done", 400),
  );
  if ("type" in link) return link;
  return {
    type: "shown",
    status: 201,
    value: link,
    title: `A link for ${person}`,
    body: () => partnerLinkBody(link, name),
    change: linkIssued(link),
  };
}

const notStarted: Outcome = {
  type: "fault",
  status: 409,
  title: "Not from here",
  words: "Where people reach the pages is not known: set publicUrl in the coordinator's settings.",
};
