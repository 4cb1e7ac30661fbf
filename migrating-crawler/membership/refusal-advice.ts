/** Tells an administrator what to do when the coordinator refuses the crawler. */
import type { CoordinatorRefuse } from "#protocol/coordinator-messages";

const joinAgain = "ask the operator for a new invitation and run join with it and --again";

const advice: { readonly [Code in CoordinatorRefuse["code"]]?: string } = {
  "bad-signature": `identity.json and membership.json of this folder do not belong together, or one of them was replaced:
 put both back from the same backup, or ${joinAgain}.`,
  "copied-folder": `This crawler's folder exists twice, or an old copy of it was put back. Run only one of them: stop the
 other one, and remove the copy. If none is to be found, tell the operator, who sees this refusal too, and ${joinAgain}.`,
  revoked: `The operator has ended this crawler's membership, so it will not be served again. Ask the operator why; with
 a new invitation, stop it and run join with it and --again. To take the crawler off this machine, run the uninstall
 command.`,
  "wrong-key": `The key in membership.json is not the one that the coordinator has for this name, or the invitation has
 run out or was used by another machine: ${joinAgain}.`,
  "wrong-version": `This program is too old or too new for the coordinator: get the one that the coordinator serves at
 /releases/dock.mjs.`,
  moved: `The operator has moved a crawler to another machine of yours (nearcrawl fleet move). Nothing is to be done; if
 you know of no such move, ask the operator.`,
};

/** Appends advice to the coordinator's words where they have none. */
export function withRefusalAdvice(reason: string, code: CoordinatorRefuse["code"]): string {
  return `${reason}. ${(advice[code] ?? "").replaceAll("\n", "")}`.trimEnd();
}
