/**
 * One term of a domain set: a top-level domain, a domain or a language, in its one form. Names are read as URLs' hosts
 * are (WHATWG URL section 3.5: IDN to ASCII, lower case), so that a term and a host always compare.
 */
import { canParseUrl } from "#core/ip/url-host";

export type NameTerm =
  | { readonly kind: "domain" | "language"; readonly value: string; readonly text: string }
  | { readonly fault: string };

export function parseNameTerm(word: string): NameTerm {
  return /^lang:/i.test(word) ? languageTerm(word) : domainTerm(word);
}

function languageTerm(word: string): NameTerm {
  const value = word.slice("lang:".length).toLowerCase();
  if (/^[a-z]{2,3}$/.test(value)) return { kind: "language", value, text: `lang:${value}` };
  return { fault: `${shown(word)} is no language: write its code of two or three letters, such as lang:el` };
}

/** A leading dot or `*.` says the same as none; a single label needs the dot, since it may be a slip. */
function domainTerm(word: string): NameTerm {
  const dotted = /^(?:\*?\.)/.test(word);
  const name = asciiName(word.replace(/^\*?\./, "").replace(/\.$/, ""));
  if (name === null) {
    return {
      fault: `${shown(word)} is no domain: write .gr for a top-level domain, example.org for a domain and all below it`,
    };
  }
  if (/(?:^|\.)\d+$/.test(name)) {
    return {
      fault: `${shown(word)} is an address: addresses are delegated by subnet, domain sets are of names`,
    };
  }
  if (!dotted && !name.includes(".")) {
    return {
      fault: `${shown(word)} is one word: write .${name} for the top-level domain, lang:CODE for a language`,
    };
  }
  return { kind: "domain", value: name, text: name.includes(".") ? name : `.${name}` };
}

/** RFC 1035 section 2.3.4: labels of 1 to 63 characters, names of 253 at most; underscores are met in real names. */
function asciiName(text: string): string | null {
  if (text === "" || text.length > 253 || /[\p{Cc}/@:?#%\\[\]<>^|*]/u.test(text)) return null;
  if (!canParseUrl(`http://${text}/`)) return null;
  const name = new URL(`http://${text}/`).hostname;
  const isName = name.split(".").every((label) => /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/.test(label));
  return isName && name.length <= 253 ? name : null;
}

/** Enough of a word to find it by, on one line. */
function shown(word: string): string {
  return JSON.stringify(word.length > 60 ? `${word.slice(0, 60)}…` : word);
}
