#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which tests hold which rules of core/CONTRACT.md.

Usage: test/rules.py [--quiet] [SECTION…]     such as 15 16, or 20 for the vectors V-1, V-2, …; none = all
       test/rules.py --write | --check        write test/RULES.md, or fail if it is not what would be written

A test case holds the rules that the comment before it, or its body, names: the table shows file and case. A rule that
only the head of a file names is held by the file as a whole. Fails if a rule is named by no test, unless the contract
marks it, or its whole table, as *(review)*, or its section comes with later work. A guarantee G… is also held
where all its main rules are.
"""
import argparse
import collections
import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent
CONTRACT = TOP / 'core' / 'CONTRACT.md'
TABLE = TOP / 'test' / 'RULES.md'
DEFINITION = re.compile(r'^(?:\| |- \*\*|\*\*)((?:R-\d+\.|V-|G)\d+)(?:\*\*)?\s*(.*)')
RANGE = re.compile(r'(?<![A-Za-z0-9])(R-\d+\.|V-|G)(\d+)(?:\s+to\s+(?:R-\d+\.|V-|G)(\d+))?')
SUFFIXES = {'.c', '.h', '.py', '.sh', '.cmake', '.txt'}
# What stands beside tests: it says by rules what it does, but checks nothing.
NO_TESTS = ('test/fake/', 'test/model/cache_model', 'test/rules.py', 'test/planted_faults', 'test/packages')
LATER = {}  # sections that come with later work, and what it is
CASE_IN_C = re.compile(r'START_TEST\((\w+)\)(.*?)END_TEST', re.S)
CASE_IN_PYTHON = re.compile(r'^(?:    )?def (test_\w+)\(.*?(?=^    def |^class |^if |^def |^@|\Z)', re.S | re.M)
FOLDED = 4  # cases of one file that are listed by name


class Rule:
    def __init__(self, name, section, text, review):
        self.name = name
        self.section = section
        self.text = text
        self.review = review
        self.cases = collections.defaultdict(list)  # file -> names of cases
        self.files = set()  # named in the head of these, or outside of cases

    def is_held(self):
        return bool(self.cases or self.files)


def read_rules(path):
    rules = {}
    section = None
    table_review = False
    for line in path.read_text(encoding='utf-8').splitlines():
        heading = re.match(r'^## (\d+)\.', line)
        if heading:
            section = heading.group(1)
        if line.startswith('| ID |'):
            table_review = '*(review)*' in line
        elif not line.startswith('|'):
            table_review = False
        found = DEFINITION.match(line)
        if found:
            text = re.sub(r'[*`|]', '', found.group(2)).strip()
            rules[found.group(1)] = Rule(found.group(1), section, text,
                                         table_review or '*(review)*' in line)
    return rules


def named_rules(text):
    text = re.sub(r'\n\s*(?:\*|//|#)?\s*', ' ', text)  # a citation may be broken across lines of a comment
    text = re.sub(r'(?<![A-Za-z0-9])v(\d+)(?=_)', r'V-\1 ', text)  # cases are named for vectors
    for prefix, first, last in RANGE.findall(text):
        for number in range(int(first), int(last or first) + 1):
            yield f'{prefix}{number}'


def split_cases(text, suffix):
    """The cases of a file, each with the text since the case before it, and what belongs to no case."""
    cases = []
    end = re.search(r'^(?:#include|import|from) ', text, re.M)
    head_end = end.start() if end else 0
    loose = [text[:head_end]]
    at = head_end
    for found in (CASE_IN_C if suffix == '.c' else CASE_IN_PYTHON).finditer(text):
        cases.append((found.group(1), text[at:found.end()]))
        at = found.end()
    loose.append(text[at:])
    return cases, '\n'.join(loose)


def test_files():
    for path in sorted((TOP / 'test').rglob('*')):
        name = str(path.relative_to(TOP))
        if path.suffix in SUFFIXES and path.is_file() and not name.startswith(NO_TESTS):
            yield path, name.removeprefix('test/')


def read_citations(rules):
    """@return how many cases name at least one rule."""
    case_count = 0
    for path, name in test_files():
        cases, loose = split_cases(path.read_text(encoding='utf-8'), path.suffix)
        for case, text in cases:
            named = [rules[rule] for rule in sorted(set(named_rules(text))) if rule in rules]
            case_count += bool(named)
            for rule in named:
                rule.cases[name].append(case)
        for rule in set(named_rules(loose)):
            if rule in rules:
                rules[rule].files.add(name)
    return case_count


def hold_guarantees(rules):
    """A guarantee that no test names rests on its main rules."""
    for rule in rules.values():
        if rule.name.startswith('G') and not rule.is_held():
            main = [rules[name] for name in named_rules(rule.text) if name in rules and name != rule.name]
            if main and all(one.is_held() for one in main):
                rule.files.update(f'by {one.name}' for one in main)


def is_missing(rule):
    return not rule.is_held() and not rule.review and rule.section not in LATER


def holders(rule):
    shown = []
    for name, cases in sorted(rule.cases.items()):
        listed = ', '.join(cases[:FOLDED]) + (f' and {len(cases) - FOLDED} more' if len(cases) > FOLDED else '')
        shown.append(f'`{name}`: {listed}')
    if not shown:
        shown = [f'`{name}`' if '/' in name else name for name in sorted(rule.files)]
    return '; '.join(shown)


def render(rules, case_count):
    missing = [rule for rule in rules.values() if is_missing(rule)]
    later = [rule for rule in rules.values() if rule.section in LATER and not rule.is_held()]
    lines = ['# Rules and the tests that hold them', '',
             'Written by `test/rules.py --write` from `core/CONTRACT.md` and the comments of the tests; do not edit.', '',
             f'{len(rules)} rules, guarantees and vectors; {case_count} named test cases cite at least one; '
             f'{sum(rule.review and not rule.is_held() for rule in rules.values())} rules are checked by review only, '
             f'{len(later)} come with later work, {len(missing)} have no test.', '']
    section = None
    for rule in rules.values():
        if rule.section != section:
            section = rule.section
            lines += ['', f'## Section {section}', '', '| Rule | Held by |', '|---|---|']
        held = holders(rule)
        if not held:
            held = '*(review)*' if rule.review else f'later: {LATER[section]}' if section in LATER else '**none**'
        lines.append(f'| {rule.name} | {held} |')
    return '\n'.join(lines) + '\n'


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('sections', nargs='*', metavar='SECTION')
    parser.add_argument('--quiet', action='store_true', help='print what is missing only')
    parser.add_argument('--write', action='store_true', help='write test/RULES.md')
    parser.add_argument('--check', action='store_true', help='fail if test/RULES.md is not current')
    options = parser.parse_args()

    rules = read_rules(CONTRACT)
    case_count = read_citations(rules)
    hold_guarantees(rules)
    chosen = [rule for rule in rules.values() if rule.section in options.sections or not options.sections]
    missing = [rule for rule in chosen if is_missing(rule)]
    if not chosen:
        sys.exit(f'rules.py: no rules in {" ".join(options.sections)}')

    table = render(rules, case_count)
    stale = options.check and (not TABLE.exists() or TABLE.read_text(encoding='utf-8') != table)
    if options.write:
        TABLE.write_text(table, encoding='utf-8')
    if stale:
        print('rules.py: test/RULES.md is not current; run test/rules.py --write', file=sys.stderr)
    for rule in [] if options.quiet or options.write or options.check else chosen:
        by = holders(rule) or ('(review)' if rule.review else 'later' if rule.section in LATER else 'NONE')
        print(f'{rule.name:8} {rule.text[:40]:40} {by}')
    for rule in missing:
        print(f'rules.py: {rule.name} is cited by no test: {rule.text[:80]}', file=sys.stderr)
    print(f'rules.py: {len(chosen)} rules, {len(missing)} without a test, {case_count} cases cite rules')
    return 1 if missing or stale else 0


if __name__ == '__main__':
    sys.exit(main())
