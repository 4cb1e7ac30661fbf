/**
 * Paths of files, as Postgres' default text search parser finds them: names of ASCII letters, digits, `_`, `-`
 * and single dots between slashes, with `.`, `..` and `~` where shells have them. Where the path does not go
 * on, it ends where one last was complete.
 */
import { asciiName, classAt, space } from "./markup-tokens.ts";

/** What has been read: `/`, `~`, `/.` or `.`, `..`, or part of a name. */
export type PathPlace = "slash" | "home" | "dot" | "parent" | "name";

const [dot, hyphen, underscore, slash, tilde] = [0x2e, 0x2d, 0x5f, 0x2f, 0x7e];

/** Where the path ends that is at `from` and has got so far; `-1 - position` of where it fails. */
export function pathEnd(text: string, from: number, begun: PathPlace): number {
  let place = begun;
  let complete = -1;
  for (let at = from; ; at++) {
    const code = text.charCodeAt(at);
    if (place === "parent" && code !== slash) return isOver(text, at) ? at : failed(complete, at);
    if (isNameCharacter(text, at, code)) place = "name";
    else if (code === slash && place !== "slash") {
      if (place === "name" || place === "parent") complete = at;
      place = "slash";
    } else if (place === "name") {
      if (code !== hyphen && !(code === dot && isNameCharacter(text, at + 1, text.charCodeAt(at + 1))))
        return at;
    } else if (place === "slash" && code === tilde) place = "home";
    else if (place === "slash" && code === dot) place = "dot";
    else if (place === "dot" && code === dot) place = "parent";
    else return failed(complete, at);
  }
}

/** `-1 - at` when nothing was complete. */
const failed = (complete: number, at: number) => (complete < 0 ? -1 - at : complete);

/** After `..`: the end of the text or a blank. */
function isOver(text: string, at: number): boolean {
  return at >= text.length || (classAt(text, at) & space) !== 0;
}

export function isNameCharacter(text: string, at: number, code: number): boolean {
  return code === underscore || (code < 0x80 && (classAt(text, at) & asciiName) !== 0);
}
