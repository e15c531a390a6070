# zsh -f offered.zsh <completion script> <line>…: what a person sees who types each line and presses Tab. Prints "> <line>",
# then the words, one a line. A terminal of its own, because zsh completes in no other place.
zmodload zsh/zpty
zpty -b inner zsh -f -i

until_seen() {
  local more
  seen=''
  until [[ $seen == *$1* ]]; do
    if zpty -r -t inner more; then seen+=$more; else sleep 0.01; fi
  done
}

# Tab completes as ever, but for the words being told, each behind \x03, and \x02 at the end.
zpty -w inner "autoload -Uz compinit; compinit -u -D; source ${(q)1}
compadd() { local -a hits; builtin compadd -O hits \"\$@\"; print -rl -- \$'\\x03'\${^hits}; builtin compadd \"\$@\" }
tell() { zle complete-word; print -r -- \$'\\x02' }
zle -N tell; bindkey '^I' tell; print REA''DY"
until_seen READY

for typed in "${@:2}"; do
  zpty -w -n inner "$typed"$'\t'
  until_seen $'\x02'
  print -r -- "> $typed"
  for line in "${(@f)seen}"; do
    [[ $line == *$'\x03'* ]] && print -r -- "${${line##*$'\x03'}%$'\r'}"
  done
  zpty -w -n inner $'\C-u'
done
zpty -d inner
