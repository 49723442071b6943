import { Anchor, Group, Stack, Text } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { percent } from '../../parts/format.ts';
import { ShareBar } from '../../parts/share-bar.tsx';
import { StatusBadge } from '../../parts/status-badge.tsx';
import { chatText, correctionText, judgeText } from '../../text/playground.ts';
import { Facts, factsOf } from '../facts.tsx';
import type { Evaluation } from './judge-request.ts';

export function EvaluationView({ evaluation }: { evaluation: Evaluation }) {
  const { summary, results, call_id: callId, model, usage } = evaluation;
  return (
    <>
      <Group justify="space-between" px="md" py="xs" className="output-bar" align="flex-start">
        <Text size="sm" flex="1 1 240px">
          {summary}
        </Text>
        {callId !== null && (
          <Anchor component={Link} to={`/calls/${encodeURIComponent(callId)}`} size="sm">
            {judgeText.openCall}
          </Anchor>
        )}
      </Group>
      <Stack gap="md" p="md" className="output-scroll" role="region" aria-label={judgeText.emptyTitle} tabIndex={0}>
        {Object.entries(results).map(([key, result]) => (
          <Answer key={key} question={key} result={result} />
        ))}
      </Stack>
      <Facts
        facts={[
          [judgeText.model, model],
          [correctionText.tokens, chatText.tokens(usage.prompt_tokens, usage.completion_tokens)],
          ...factsOf(evaluation),
        ]}
      />
    </>
  );
}

function Answer({ question, result }: { question: string; result: Evaluation['results'][string] }) {
  const { answer, reason, confidence, evidence } = result;
  return (
    <section aria-label={question}>
      <Group gap="xs">
        <Text size="sm" fw={600}>
          {question}
        </Text>
        <StatusBadge tone="active">{answer}</StatusBadge>
        <ShareBar label={judgeText.confidence} value={confidence} text={percent(confidence)} />
      </Group>
      <Text size="sm">{reason}</Text>
      {evidence.length === 0 ? (
        <Text size="xs" c="dimmed">
          {judgeText.noEvidence}
        </Text>
      ) : (
        evidence.map((quote) => (
          <blockquote key={quote} className="quote">
            {quote}
          </blockquote>
        ))
      )}
    </section>
  );
}
