/** The completion of zsh (5.0 or newer): as bash's, with what each word is for. */
import type { CommandNode, OptionNode, Word } from "./command-tree.ts";

export function zshScript(nodes: readonly CommandNode[]): string {
  return `#compdef nearcrawl
# zsh completion of nearcrawl. Take it in with: source <(nearcrawl completion zsh), after compinit.
_nearcrawl_node() {
  commands=() options=() valued=() files=()
  case "$1" in
${nodes.map(nodeCase).join("\n")}
    *) return 1 ;;
  esac
}

_nearcrawl_choices() {
  choices=()
  case "$1" in
${nodes.flatMap(choiceCases).join("\n")}
  esac
}

_nearcrawl() {
  local cur=\${words[CURRENT]} prev=\${words[CURRENT-1]} at= word
  local -i index
  local -a commands options valued files choices
  _nearcrawl_node ""
  for ((index = 2; index < CURRENT; index++)); do
    word=\${words[index]}
    if (( \${valued[(Ie)$word]} )); then
      ((index++))
    elif (( \${commands[(I)\${(b)word}:*]} )); then
      at="\${at:+$at }$word"
      _nearcrawl_node "$at" || return 1
    fi
  done
  _nearcrawl_choices "$at $prev"
  if (( $#choices )); then
    compadd -- $choices
  elif (( \${valued[(Ie)$prev]} )); then
    (( \${files[(Ie)$prev]} )) && _files
  elif [[ $cur == -* ]]; then
    _describe -o option options
  else
    (( $#commands )) && _describe command commands
    (( \${files[(Ie).]} )) && _files
  fi
  return 0
}

if [[ \${funcstack[1]-} == _nearcrawl ]]; then _nearcrawl "$@"; else compdef _nearcrawl nearcrawl; fi
`;
}

function nodeCase({ path, commands, options, takesFiles }: CommandNode): string {
  const files = [...(takesFiles ? ["."] : []), ...options.filter(ofFile).map(({ name }) => name)];
  const valued = options.filter(({ value }) => value !== "none").map(({ name }) => name);
  return `    "${path}") commands=(${described(commands)}) options=(${described(options)}) valued=(${valued.join(" ")}) files=(${files.join(" ")}) ;;`;
}

/** \`name:what it is for\`, as _describe takes it; the tree has taken out quotes and colons. */
function described(words: readonly Word[]): string {
  return words.map(({ name, summary }) => `'${name}:${summary}'`).join(" ");
}

function choiceCases({ path, options }: CommandNode): string[] {
  return options
    .filter(({ value }) => value === "choice")
    .map(({ name, choices }) => `    "${path} ${name}") choices=(${choices.join(" ")}) ;;`);
}

const ofFile = ({ value }: OptionNode) => value === "file";
