#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which tests cite which rules of core/CONTRACT.md.

Usage: test/rules.py [--quiet] SECTION...     such as 15 16, or 20 for the vectors V-1, V-2, ...

Prints a table of the rules of these sections with the tests that cite them. Fails if a rule is cited by none,
unless the contract marks it, or its whole table, as *(review)*.
"""
import argparse
import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent
DEFINITION = re.compile(r'^(?:\| |- \*\*|\*\*)((?:R-\d+\.|V-)\d+)(?:\*\*)?\s*(.*)')
RANGE = re.compile(r'(R-\d+\.|V-)(\d+)(?:\s+to\s+(?:R-\d+\.|V-)(\d+))?')
SUFFIXES = {'.c', '.h', '.py', '.sh'}
# What stands beside tests: it says by rules what it does, but checks nothing.
NO_TESTS = ('test/fake/', 'test/model/cache_model', 'test/rules.py')


class Rule:
    def __init__(self, name, section, text, review):
        self.name = name
        self.section = section
        self.text = text
        self.review = review
        self.cited_by = set()


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


def read_citations(folder, rules):
    for path in sorted(folder.rglob('*')):
        if path.suffix not in SUFFIXES or str(path.relative_to(TOP)).startswith(NO_TESTS):
            continue
        # A citation may be broken across lines of a comment.
        text = re.sub(r'\n\s*(?:\*|//|#)?\s*', ' ', path.read_text(encoding='utf-8'))
        text = re.sub(r'(?<![A-Za-z0-9])v(\d+)(?=_)', r'V-\1 ', text)  # cases are named for vectors
        for prefix, first, last in RANGE.findall(text):
            for number in range(int(first), int(last or first) + 1):
                rule = rules.get(f'{prefix}{number}')
                if rule:
                    rule.cited_by.add(path.stem)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('sections', nargs='+', metavar='SECTION')
    parser.add_argument('--quiet', action='store_true', help='print what is missing only')
    options = parser.parse_args()

    rules = read_rules(TOP / 'core' / 'CONTRACT.md')
    read_citations(TOP / 'test', rules)
    chosen = [rule for rule in rules.values() if rule.section in options.sections]
    missing = [rule for rule in chosen if not rule.cited_by and not rule.review]
    if not chosen:
        sys.exit(f'rules.py: no rules in {" ".join(options.sections)}')

    for rule in [] if options.quiet else chosen:
        by = ' '.join(sorted(rule.cited_by)) or ('(review)' if rule.review else 'NONE')
        print(f'{rule.name:8} {rule.text[:40]:40} {by}')
    for rule in missing:
        print(f'rules.py: {rule.name} is cited by no test: {rule.text[:80]}', file=sys.stderr)
    print(f'rules.py: {len(chosen)} rules, {len(missing)} without a test')
    return 1 if missing else 0


if __name__ == '__main__':
    sys.exit(main())
