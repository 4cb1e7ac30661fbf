/**
 * Parses a tsquery as Postgres writes it into a tree. It reads only what websearch_to_tsquery makes: words, `&`, `|`,
 * `!`, and chains of consecutive words (`<->`, `<2>`). Precedence, tightest first: `!`, `<->`, `&`, `|`.
 */

export type QueryNode = WordNode | PhraseNode | NotNode | PairNode;

export interface WordNode {
  readonly type: "word";
  readonly lexeme: string;
}

/** `right` begins `distance` places after the end of `left`. */
export interface PhraseNode {
  readonly type: "phrase";
  readonly left: WordNode | PhraseNode;
  readonly right: WordNode | PhraseNode;
  readonly distance: number;
}

interface NotNode {
  readonly type: "not";
  readonly operand: QueryNode;
}

interface PairNode {
  readonly type: "and" | "or";
  readonly left: QueryNode;
  readonly right: QueryNode;
}

/** Returns null for what is not supported here (weights, prefixes, alternatives within a phrase). */
export function readTsquery(text: string): QueryNode | null {
  const reader = new Reader(text);
  const node = reader.either();
  return reader.isAtEnd ? node : null;
}

/** Every word of the query once, including excluded ones. */
export function wordsOf(node: QueryNode): string[] {
  const words = new Set<string>();
  const visit = (one: QueryNode): void => {
    if (one.type === "word") words.add(one.lexeme);
    else if (one.type === "not") visit(one.operand);
    else {
      visit(one.left);
      visit(one.right);
    }
  };
  visit(node);
  return [...words];
}

const token = /\s*(?:'((?:[^'\\]|''|\\.)*)'|(<->|<\d+>|[&|!()]))/uy;

class Reader {
  readonly #tokens: readonly (readonly [lexeme: string | null, operator: string])[] | null;
  #at = 0;

  constructor(text: string) {
    const tokens: [string | null, string][] = [];
    token.lastIndex = 0;
    let end = 0;
    for (let match = token.exec(text); match !== null; match = token.exec(text)) {
      const [, quoted, operator = ""] = match;
      tokens.push([
        quoted === undefined ? null : quoted.replace(/''|\\(.)/gu, (_, one) => one ?? "'"),
        operator,
      ]);
      end = token.lastIndex;
    }
    this.#tokens = text.slice(end).trim() === "" && tokens.length > 0 ? tokens : null;
  }

  get isAtEnd(): boolean {
    return this.#tokens !== null && this.#at === this.#tokens.length;
  }

  either(): QueryNode | null {
    return this.#pairs("|", "or", () => this.#pairs("&", "and", () => this.#phrase()));
  }

  #pairs(operator: string, type: PairNode["type"], next: () => QueryNode | null): QueryNode | null {
    let left = next();
    while (left !== null && this.#take(operator)) {
      const right = next();
      if (right === null) return null;
      left = { type, left, right };
    }
    return left;
  }

  #phrase(): QueryNode | null {
    let left = this.#single();
    for (;;) {
      const distance = this.#distance();
      if (left === null || distance === null) return left;
      const right = this.#single();
      if (right === null || !isPart(left) || !isPart(right)) return null;
      left = { type: "phrase", left, right, distance };
    }
  }

  #single(): QueryNode | null {
    if (this.#take("!")) {
      const operand = this.#single();
      return operand === null ? null : { type: "not", operand };
    }
    if (this.#take("(")) {
      const inside = this.either();
      return this.#take(")") ? inside : null;
    }
    const [lexeme = null] = this.#tokens?.[this.#at] ?? [];
    if (lexeme === null) return null;
    this.#at += 1;
    return { type: "word", lexeme };
  }

  #take(operator: string): boolean {
    if (this.#tokens?.[this.#at]?.[1] !== operator) return false;
    this.#at += 1;
    return true;
  }

  #distance(): number | null {
    const operator = this.#tokens?.[this.#at]?.[1] ?? "";
    if (!operator.startsWith("<")) return null;
    this.#at += 1;
    return operator === "<->" ? 1 : Number(operator.slice(1, -1));
  }
}

function isPart(node: QueryNode): node is WordNode | PhraseNode {
  return node.type === "word" || node.type === "phrase";
}
