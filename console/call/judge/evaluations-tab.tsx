import { Button, Group, Paper, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Gavel } from 'lucide-react';
import { money, percent } from '../../parts/format.ts';
import { Loaded } from '../../parts/loaded.tsx';
import { EmptyState } from '../../parts/states.tsx';
import { StatusBadge } from '../../parts/status-badge.tsx';
import { Time } from '../../parts/time.tsx';
import { evaluationsText } from '../../text/call.ts';
import type { Call } from '../call-data.ts';
import { type Evaluation, evaluationsQuery } from '../queries.ts';
import './evaluations.css';

export function EvaluationsTab({ call }: { call: Call }) {
  const query = useQuery(evaluationsQuery(call.call_id));
  return (
    <Loaded query={query}>
      {({ evaluations }) =>
        evaluations.length === 0 ? (
          <EmptyState icon={Gavel} title={evaluationsText.emptyTitle} actions={<EvaluateButton call={call} />}>
            {call.transcribe_requested ? evaluationsText.empty : evaluationsText.noTranscript}
          </EmptyState>
        ) : (
          <Stack>
            <Group>
              <EvaluateButton call={call} />
            </Group>
            {evaluations.map((evaluation) => (
              <EvaluationCard key={evaluation.id} evaluation={evaluation} />
            ))}
          </Stack>
        )
      }
    </Loaded>
  );
}

function EvaluateButton({ call: { call_id: id } }: { call: Call }) {
  return (
    <Button
      component={Link}
      to={`/playground?tab=judge&call=${encodeURIComponent(id)}`}
      variant="light"
      leftSection={<Gavel size={14} aria-hidden />}
    >
      {evaluationsText.evaluate}
    </Button>
  );
}

function EvaluationCard({ evaluation }: { evaluation: Evaluation }) {
  const { summary, results, model, cost_usd: cost, created_at: at } = evaluation;
  return (
    <Paper withBorder p="md" component="article" aria-label={summary}>
      <Text size="sm" fw={500}>
        {summary}
      </Text>
      <Text size="xs" c="dimmed">
        <Time at={at} /> · {model} · {money(cost)}
      </Text>
      <dl className="evaluation">
        {Object.entries(results).map(([question, { answer, reason, confidence, evidence }]) => (
          <div key={question}>
            <dt>{question}</dt>
            <dd>
              <Group gap="xs">
                <StatusBadge tone="active">{String(answer)}</StatusBadge>
                <Text size="xs" c="dimmed">
                  {evaluationsText.confidence(percent(confidence))}
                </Text>
              </Group>
              <Text size="sm">{reason}</Text>
              {evidence.map((quote) => (
                <blockquote key={quote}>{quote}</blockquote>
              ))}
            </dd>
          </div>
        ))}
      </dl>
    </Paper>
  );
}
