/**
 * A company's name without what does not tell companies apart: case, accents, punctuation and legal forms.
 * `Example Networks, Inc.`, `EXAMPLE NETWORKS INC` and `Example-Networks` are one company. What remains may be
 * too little to tell two companies apart; `isDistinctive` says so.
 */

import { withoutLegalForms, wordSet } from "./legal-forms.ts";

/** Longer names are cut here: nothing behind distinguishes companies, and text from registries is not to be trusted. */
const maxNameLength = 200;

const eastAsianForms = /株式会社|有限会社|合同会社|股份有限公司|有限责任公司|有限公司|주식회사/g;

/** Words that so many companies bear that they do not tell one from another. */
const commonWords = wordSet(`
  a access administration agency alfa alpha an and area association at authority backbone bank block broadband
  broadcasting business by cable center central centre centro city client clients cloud college com comercio
  communication communications companhia computer computers computing connect consulting corporate council
  customer customers data datacenter de del department der di digital do dsl dynamic education electric
  electronics empresa enterprise enterprises exchange fiber fibre first for foundation general global government
  group holding holdings home hospital host hosted hosting hostmaster in infrastructure institute interconnect
  international internet intersvyaz intranet ip isp it ix la lan last library line link local management media
  mile ministry mobile multiservice national net network networks new of office online operations operator phone
  pool power provider public regional research residential school server servers service services servicios
  sistemas site smart soft software solution solutions state static svyazinform svyaztelecom system
  systems tech technologies technology tele telecom telecommunication telecommunications telecomservice
  telecomunicaciones telecomunicacoes telekom telematica telephone teleservis television the trading und
  university uplink user users wan web webhosting wifi wireless world y
`);

/** Fewest letters and digits in the own words of a name, when there are two words or more. */
const minOwnLetters = 7;
/**
 * Fewest in a single own word, alone or beside a common one. Among 75,000 network operators "Skynet", "Intercom",
 * "Fiberlink" and "Infinity Broadband" were several strangers each; longer words mostly meant one company.
 */
const minLettersOfOneWord = 10;
const minLettersBesideCommon = 9;
/** The same for Chinese, Japanese and Korean names, in characters. */
const minWideLetters = 4;

export interface CompanyName {
  /** Without case, accents, punctuation and legal forms, words separated by single spaces; may be empty. */
  readonly text: string;
  /** Whether that is long and particular enough to mean one company wherever it is read. */
  readonly isDistinctive: boolean;
}

export function companyNameOf(name: string): CompanyName {
  const words = withoutLegalForms(companyWords(name.slice(0, maxNameLength)));
  const text = words.join(" ");
  return { text, isDistinctive: areDistinctive(words, text) };
}

/** The text alone of `companyNameOf`. */
export function normaliseCompanyName(name: string): string {
  return withoutLegalForms(companyWords(name.slice(0, maxNameLength))).join(" ");
}

/** The words are hashed for the legal forms already, so that looking them up once more costs little. */
function areDistinctive(words: readonly string[], text: string): boolean {
  const ascii = isAscii(text);
  let own = 0;
  let letters = 0;
  for (const word of words) {
    if (commonWords.has(word) || (isDigit(word.charCodeAt(0)) && onlyDigits.test(word))) continue;
    own += 1;
    letters += ascii ? word.length : [...word].length;
  }
  if (!ascii && wideLetter.test(text)) return letters >= minWideLetters;
  if (own > 1) return letters >= minOwnLetters;
  return letters >= (words.length > 1 ? minLettersBesideCommon : minLettersOfOneWord);
}

const isDigit = (code: number) => code >= 0x30 && code <= 0x39;
const onlyDigits = /^\d+$/;
/** Chinese, Japanese and Korean names: two characters say as much as a Latin word. */
const wideLetter = /[\p{Script=Han}\p{Script=Hangul}\p{Script=Hiragana}\p{Script=Katakana}]/u;

/** Names in plain ASCII, nearly all, take a way of their own: the same without what only other letters need. */
function companyWords(name: string): readonly string[] {
  const lower = name.toLowerCase();
  return isAscii(lower) ? asciiWords(lower) : unicodeWords(name);
}

function asciiWords(lower: string): readonly string[] {
  let text = lower;
  if (dotOrSlash.test(text)) text = text.replace(formAtTheEnd, "").replace(asciiInitials, joined);
  if (text.includes("&")) text = text.replaceAll("&", " and ");
  if (quote.test(text)) text = text.replace(/['`]/g, "");
  return text.match(/[a-z0-9]+/g) ?? [];
}

function unicodeWords(name: string): readonly string[] {
  const text = name
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .normalize("NFC")
    .toLowerCase()
    .replace(eastAsianForms, " ")
    .replace(formAtTheEnd, "")
    .replace(initials, joined)
    .replace(/&/g, " and ")
    .replace(/['’`]/g, "");
  return text.match(/[\p{L}\p{N}]+/gu) ?? [];
}

/** `Example, C.A.` and `Example, PT`: elsewhere `ca` and `pt` are California, Portugal and more. */
const formAtTheEnd = /(?:[\s,]c\.\s?a|,\s*pt)\.?$/;
/** `S.A.`, `a/s`, `G.m.b.H`: letters with a point or slash behind each but the last. */
const asciiInitials = /(?<![a-z0-9])(?:[a-z][./]\s?)+[a-z]?(?![a-z0-9])/g;
const initials = /(?<![\p{L}\p{N}])(?:\p{L}[./]\s?)+\p{L}?(?![\p{L}\p{N}])/gu;
const joined = (letters: string) => `${letters.replace(/[./\s]/g, "")} `;
const isAscii = (text: string) => !notAscii.test(text);
const notAscii = /[\u0080-\uffff]/;
const dotOrSlash = /[./,]/;
const quote = /['`]/;
