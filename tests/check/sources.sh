# Lists the project's own text files; source this file from bash.
# shellcheck shell=bash

readonly skip_code=77

skip() {
    echo "SKIP: $*"
    exit "$skip_code"
}

# project_files NAME-PATTERN...: files of the working tree, new ones included, NUL-separated.
project_files() {
    local pattern conditions=()
    for pattern in "$@"; do
        conditions+=(-o -name "$pattern")
    done
    find . \( -path ./.git -o -path './build*' -o -path ./tests/golden -o -path ./tests/data \) \
        -prune -o -type f \( "${conditions[@]:1}" \) -print0 | sort -z
}

cpp_files() { project_files '*.c' '*.h' '*.cpp'; }

# Shell scripts by their first line, since most have no suffix, and the files that they source.
shell_files() {
    local file first
    while IFS= read -r -d '' file; do
        first=
        IFS= read -r first <"$file" 2>/dev/null || [[ -n $first ]] || continue
        if [[ $first =~ ^#!.*[/\ ](ba)?sh( |$) || $file == *.sh ]]; then
            printf '%s\0' "$file"
        fi
    done < <(project_files '*') 2>/dev/null
}
