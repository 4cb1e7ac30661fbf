/** The completion of bash (4.2 or newer, without the package bash-completion). */
import type { CommandNode, OptionNode } from "./command-tree.ts";

export function bashScript(nodes: readonly CommandNode[]): string {
  return `# bash completion of nearcrawl. Take it in with: source <(nearcrawl completion bash)
_nearcrawl_node() {
  commands= options= valued= files= choices=
  case "$1" in
${nodes.map(nodeCase).join("\n")}
    *) return 1 ;;
  esac
}

_nearcrawl_choices() {
  case "$1" in
${nodes.flatMap(choiceCases).join("\n")}
  esac
}

_nearcrawl() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} path= word index
  local commands options valued files choices
  _nearcrawl_node ""
  for ((index = 1; index < COMP_CWORD; index++)); do
    word=\${COMP_WORDS[index]}
    if [[ " $valued " == *" $word "* ]]; then
      ((index++))
    elif [[ " $commands " == *" $word "* ]]; then
      path="\${path:+$path }$word"
      _nearcrawl_node "$path" || return 0
    fi
  done
  COMPREPLY=()
  choices=$(_nearcrawl_choices "$path $prev")
  if [[ -n $choices ]]; then
    COMPREPLY=($(compgen -W "$choices" -- "$cur"))
  elif [[ " $valued " == *" $prev "* ]]; then
    [[ " $files " == *" $prev "* ]] && COMPREPLY=($(compgen -f -- "$cur"))
  elif [[ $cur == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$cur"))
  else
    COMPREPLY=($(compgen -W "$commands" -- "$cur"))
    [[ " $files " == *" . "* ]] && COMPREPLY+=($(compgen -f -- "$cur"))
  fi
  return 0
}
complete -o filenames -F _nearcrawl nearcrawl
`;
}

function nodeCase({ path, commands, options, takesFiles }: CommandNode): string {
  const names = (list: readonly { readonly name: string }[]) => list.map(({ name }) => name).join(" ");
  const files = [...(takesFiles ? ["."] : []), ...options.filter(ofFile).map(({ name }) => name)];
  return `    "${path}") commands="${names(commands)}" options="${names(options)}" valued="${names(options.filter(hasValue))}" files="${files.join(" ")}" ;;`;
}

function choiceCases({ path, options }: CommandNode): string[] {
  return options
    .filter(({ value }) => value === "choice")
    .map(({ name, choices }) => `    "${path} ${name}") echo "${choices.join(" ")}" ;;`);
}

const hasValue = ({ value }: OptionNode) => value !== "none";
const ofFile = ({ value }: OptionNode) => value === "file";
