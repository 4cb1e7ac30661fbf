/** /coordinators: who is above and below this coordinator, what waits for each; children are invited and removed. */
import { z } from "zod";
import type { WebPart } from "../http-server.ts";
import type { Visit } from "../web/access.ts";
import type { ActionFault, AskedAction, Outcome } from "../web/actions.ts";
import type { CoordinatorStore } from "./exchange-ports.ts";
import { addExchangeRoute, type ExchangeRoutePorts } from "./exchange-route.ts";
import {
  childInvited,
  childName,
  childRemoved,
  type InviteChildPorts,
  inviteChild,
  inviteFaultWords,
} from "./invite-child.ts";
import { coordinatorsBody, emptyInvite, type InviteForm, invitedChildBody } from "./page.ts";

export interface CoordinatorRoutePorts extends InviteChildPorts, ExchangeRoutePorts {
  readonly coordinators: CoordinatorStore;
}

const section = "/fleet" as const;
const mostShownName = 80;

export function coordinatorRoutes(ports: CoordinatorRoutePorts): WebPart {
  return ({ app, views, actions }) => {
    addExchangeRoute(app, ports);
    views.add({
      ...{ path: "/coordinators", api: "/api/coordinators", section, needs: "fleet-read" },
      view: async ({ now }) => {
        const coordinators = await ports.coordinators.list(now);
        const body = (visit: Visit) => coordinatorsBody({ coordinators, now }, emptyInvite, visit);
        return { status: 200, value: coordinators, title: "Coordinators", body };
      },
    });
    actions.add({
      ...{ path: "/coordinators/invite", api: "/api/coordinators/invite", section, needs: "fleet-write" },
      // A form's fault is shown on it, with what was typed.
      body: z.looseObject({}),
      fromForm: ({ name = "" }) => ({ name: name.trim() }),
      act: async (asked) => await invite(asked, ports),
    });
    actions.add({
      path: "/coordinators/:name/remove",
      api: "/api/coordinators/:name/remove",
      ...{ section, needs: "fleet-write", body: z.strictObject({}), fromForm: () => ({}) },
      act: async ({ param }) => await remove(param("name"), ports),
    });
  };
}

async function invite(
  asked: AskedAction<Record<string, unknown>>,
  ports: CoordinatorRoutePorts,
): Promise<Outcome> {
  const { body, actor, now } = asked;
  const name = childName.safeParse(body.name);
  const typed = typeof body.name === "string" ? body.name.slice(0, mostShownName) : "";
  if (!name.success) return await notInvited({ name: typed, fault: nameFault }, asked, ports, 422);
  const invited = await inviteChild(name.data, ports, { createdBy: actor.name, now });
  if (typeof invited === "string") {
    return await notInvited({ name: typed, fault: inviteFaultWords(name.data)[invited] }, asked, ports, 409);
  }
  return {
    type: "shown",
    status: 201,
    value: invited,
    title: `${invited.name} may join`,
    body: () => invitedChildBody(invited),
    change: childInvited(invited),
  };
}

const nameFault =
  "name: is 1 to 63 lower-case letters, digits, dots, dashes and underscores, and begins with a letter or digit";

async function notInvited(
  form: InviteForm,
  { now }: AskedAction<Record<string, unknown>>,
  { coordinators: store }: CoordinatorRoutePorts,
  status: 409 | 422,
): Promise<ActionFault> {
  const coordinators = await store.list(now);
  const again = (visit: Visit) => coordinatorsBody({ coordinators, now }, form, visit);
  return { type: "fault", status, title: "Nobody was invited", words: form.fault ?? "", again };
}

async function remove(name: string, { coordinators }: CoordinatorRoutePorts): Promise<Outcome> {
  if (!(await coordinators.remove(name))) {
    const words = `There is no child "${name.slice(0, mostShownName)}".`;
    return { type: "fault", status: 404, title: "Not known", words };
  }
  const change = childRemoved(name);
  return { type: "done", value: { name, removed: true }, goTo: "/coordinators", said: change.words, change };
}
