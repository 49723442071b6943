import { Alert, Group, Stack, Text } from '@mantine/core';
import { SearchX } from 'lucide-react';
import { CopyIcon } from '../../parts/copy-field.tsx';
import { percent } from '../../parts/format.ts';
import { ShareBar } from '../../parts/share-bar.tsx';
import { EmptyState } from '../../parts/states.tsx';
import { memoryText } from '../../text/playground.ts';
import { Facts, factsOf } from '../facts.tsx';
import { Output } from '../output.tsx';
import type { FoundMemory, SearchResult } from './memory-requests.ts';

export function FoundMemories({ result }: { result: SearchResult }) {
  return (
    <>
      {result.degraded && (
        <Alert color="orange" m="md">
          {memoryText.degraded}
        </Alert>
      )}
      {result.mode === 'context' ? <Context result={result} /> : <Memories result={result} />}
    </>
  );
}

function Context({ result }: { result: Extract<SearchResult, { mode: 'context' }> }) {
  if (result.context === '') {
    return (
      <EmptyState icon={SearchX} title={memoryText.nothingTitle}>
        {memoryText.noContext}
      </EmptyState>
    );
  }
  return (
    <>
      <Group justify="space-between" px="md" py={4} className="output-bar">
        <Text size="sm" c="dimmed">
          {memoryText.sources(result.sources.length)}, {memoryText.tokens(result.token_count)}
        </Text>
        <CopyIcon value={result.context} label={memoryText.contextLabel} />
      </Group>
      <Output label={memoryText.contextLabel}>{result.context}</Output>
      <Facts facts={factsOf(result)} />
    </>
  );
}

function Memories({ result }: { result: Extract<SearchResult, { mode: 'memories' }> }) {
  if (result.results.length === 0) {
    return (
      <EmptyState icon={SearchX} title={memoryText.nothingTitle}>
        {memoryText.nothing}
      </EmptyState>
    );
  }
  return (
    <>
      <Text size="sm" c="dimmed" px="md" py="xs" className="output-bar" role="status">
        {memoryText.found(result.total)}
      </Text>
      <Stack gap="md" p="md" className="output-scroll" role="region" aria-label={memoryText.memories} tabIndex={0}>
        {result.results.map((found) => (
          <Found key={found.id} found={found} />
        ))}
      </Stack>
      <Facts facts={factsOf(result)} />
    </>
  );
}

function Found({ found: { title, memory, score, scores } }: { found: FoundMemory }) {
  return (
    <div>
      {title !== null && (
        <Text size="sm" fw={600}>
          {title}
        </Text>
      )}
      <Text size="sm" className="chat-text">
        {memory}
      </Text>
      <Group gap="lg" mt={6}>
        <ShareBar label={memoryText.score} value={score} text={score.toFixed(2)} />
        <ShareBar label={memoryText.keyword} value={scores.keyword} text={shareOf(scores.keyword)} />
        <ShareBar label={memoryText.meaning} value={scores.semantic} text={shareOf(scores.semantic)} />
        <Text size="xs" c="dimmed">
          {whyOf(scores)}
        </Text>
      </Group>
    </div>
  );
}

function shareOf(score: number | null): string {
  return score === null ? memoryText.notFoundBy : percent(score);
}

function whyOf({ keyword, semantic }: FoundMemory['scores']): string {
  if (keyword !== null && semantic !== null) return memoryText.why.both;
  return keyword === null ? memoryText.why.meaning : memoryText.why.keyword;
}
