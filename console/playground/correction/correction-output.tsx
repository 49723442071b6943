import { Group, SegmentedControl, Text, VisuallyHidden } from '@mantine/core';
import { SpellCheck } from 'lucide-react';
import { useMemo } from 'react';
import { useUrlSearch } from '../../app/url-search.ts';
import { CopyIcon } from '../../parts/copy-field.tsx';
import { EmptyState } from '../../parts/states.tsx';
import { chatText, correctionText } from '../../text/playground.ts';
import { Facts, factsOf } from '../facts.tsx';
import { Output } from '../output.tsx';
import type { correct } from './correction-request.ts';
import { type Change, differences } from './diff.ts';

/** The corrected text (`?show=text`), or its differences word by word. */
export function CorrectionOutput({ result }: { result: Awaited<ReturnType<typeof correct>> | undefined }) {
  const [search, change] = useUrlSearch();
  const changes = useMemo(() => (result ? differences(result.before, result.after) : []), [result]);
  if (result === undefined) {
    return (
      <EmptyState icon={SpellCheck} title={correctionText.emptyTitle}>
        {correctionText.empty}
      </EmptyState>
    );
  }
  const isPlain = search.show === 'text';
  const stretches = changesIn(changes);
  return (
    <>
      <Group justify="space-between" px="md" py="xs" className="output-bar">
        <SegmentedControl
          aria-label={correctionText.view}
          size="xs"
          value={isPlain ? 'text' : 'differences'}
          onChange={(value) => change({ show: value === 'text' ? value : undefined })}
          data={[
            { value: 'differences', label: correctionText.differences },
            { value: 'text', label: correctionText.corrected },
          ]}
        />
        <Group gap="xs">
          <Text size="sm" c="dimmed" role="status">
            {stretches === 0 ? correctionText.same : correctionText.changes(stretches)}
          </Text>
          <CopyIcon value={result.after} label={correctionText.copy} />
        </Group>
      </Group>
      <Output label={correctionText.corrected}>{isPlain ? result.after : <Changes changes={changes} />}</Output>
      <Facts
        facts={[
          [correctionText.model, result.model],
          [correctionText.tokens, chatText.tokens(result.usage.prompt_tokens, result.usage.completion_tokens)],
          ...factsOf(result),
        ]}
      />
    </>
  );
}

function Changes({ changes }: { changes: readonly Change[] }) {
  return changes.map(({ kind, text }, index) => {
    const key = `${index} ${kind}`;
    if (kind === 'same') return <span key={key}>{text}</span>;
    const Element = kind === 'removed' ? 'del' : 'ins';
    return (
      <Element key={key} className={kind}>
        {/* Screen readers do not announce these elements. */}
        <VisuallyHidden>{correctionText[kind]} </VisuallyHidden>
        {text}
      </Element>
    );
  });
}

/** A removal and the addition after it count as one change. */
function changesIn(changes: readonly Change[]): number {
  return changes.filter(({ kind }, index) => kind !== 'same' && (index === 0 || changes[index - 1]!.kind === 'same'))
    .length;
}
