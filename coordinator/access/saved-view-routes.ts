/** /account/views: saving the page that one looks at under a name, and forgetting it. */
import { z } from "zod";
import { localPath } from "../web/access.ts";
import type { ActionFault, Outcome, WebPart } from "../web/actions.ts";
import { nothingBody } from "../web/form-fields.ts";
import { longestViewName, mostSavedViews, ownerOf, type SavedViewStore } from "./saved-view.ts";

const viewBody = z.object({
  name: z
    .string()
    .transform((text) => text.replace(/\p{Cc}/gu, " ").trim())
    .pipe(z.string().min(1, "give the view a name").max(longestViewName)),
  path: z.string().refine((text) => localPath(text) !== null, "must be the address of a page here"),
});

export function savedViewRoutes(store: SavedViewStore): WebPart {
  return ({ actions }) => {
    actions.add({
      ...{ path: "/account/views", api: null, needs: null },
      body: viewBody,
      act: async ({ body: { name, path }, visit, now }): Promise<Outcome> => {
        const owner = ownerOf(visit);
        if (owner === null) return notSignedIn;
        if (!(await store.save(owner, { name, path, savedAt: now }))) return noRoom;
        return { type: "done", value: null, goTo: path, said: `Saved as “${name}”.`, change: null };
      },
    });
    actions.add({
      ...{ path: "/account/views/:id/delete", api: null, needs: null },
      body: nothingBody,
      act: async ({ visit, param }): Promise<Outcome> => {
        const owner = ownerOf(visit);
        const id = param("id");
        const name = owner && /^\d{1,15}$/.test(id) ? await store.remove(owner, Number(id)) : null;
        if (name === null) return noView;
        return { type: "done", value: null, goTo: "/account", said: `“${name}” is deleted.`, change: null };
      },
    });
  };
}

const notSignedIn: ActionFault = {
  type: "fault",
  status: 403,
  title: "Not signed in",
  words: "Views are saved for people who have signed in.",
};

const noRoom: ActionFault = {
  type: "fault",
  status: 409,
  title: "No room for another view",
  words: `You have ${mostSavedViews} saved views, as many as there may be. Delete one on your account page first.`,
};

const noView: ActionFault = {
  type: "fault",
  status: 404,
  title: "Not there any more",
  words: "You have no saved view of this number; it may have been deleted already.",
};
