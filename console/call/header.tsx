import { Anchor, Group, Paper, Stack } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { ChevronLeft } from 'lucide-react';
import { useServerNow } from '../parts/clock.ts';
import { CopyField } from '../parts/copy-field.tsx';
import { type Fact, Facts } from '../parts/facts.tsx';
import { duration, money } from '../parts/format.ts';
import { PageHeader } from '../parts/page-header.tsx';
import { Time } from '../parts/time.tsx';
import { callText } from '../text/call.ts';
import { directionText } from '../text/call-words.ts';
import { CallActions } from './actions/call-actions.tsx';
import { type Call, isTalking, totalCost } from './call-data.ts';
import { CallStateBadge, endText } from './call-state.tsx';
import { partyName } from './party.tsx';

interface CallHeaderProps {
  call: Call;
  transferTarget: string | null;
}

/** State, parties, times and cost, with the actions of a live call. */
export function CallHeader({ call, transferTarget }: CallHeaderProps) {
  return (
    <>
      <Anchor component={Link} to="/calls" size="sm" c="dimmed">
        <Group gap={2} component="span" mb={4}>
          <ChevronLeft size={14} aria-hidden />
          {callText.back}
        </Group>
      </Anchor>
      <PageHeader
        title={callText.title(partyName(call, 'agent'), partyName(call, 'customer'))}
        description={
          <Group gap="sm" mt={4}>
            <CallStateBadge call={call} />
            <span>{directionText[call.direction]}</span>
            <CopyField value={call.call_id} label={callText.id} />
            <CopyField value={call.reference_id} label={callText.reference} />
          </Group>
        }
      >
        <CallActions call={call} transferTarget={transferTarget} />
      </PageHeader>
      <Paper withBorder px="md" py="sm" mb="md">
        <CallFacts call={call} />
      </Paper>
    </>
  );
}

function CallFacts({ call }: { call: Call }) {
  const cost = totalCost(call);
  const reason = endText(call);
  const facts: Fact[] = [
    { label: callText.placed, value: <Time at={call.created_at} /> },
    ...(call.answer_time ? [{ label: callText.answered, value: <Time at={call.answer_time} show="time" /> }] : []),
    ...(call.end_time ? [{ label: callText.ended, value: <Time at={call.end_time} show="time" /> }] : []),
    { label: callText.talk, value: <TalkTime call={call} /> },
    ...(cost === null ? [] : [{ label: callText.cost, value: <Cost call={call} total={cost} /> }]),
    ...(reason === null ? [] : [{ label: callText.endedBy, value: reason }]),
  ];
  return <Facts facts={facts} />;
}

function TalkTime({ call }: { call: Call }) {
  return (
    <span className="tabular">
      {isTalking(call) && call.answer_time ? <Counting since={call.answer_time} /> : duration(call.talk_seconds ?? 0)}
    </span>
  );
}

function Counting({ since }: { since: string }) {
  return duration((useServerNow() - Date.parse(since)) / 1000);
}

function Cost({ call, total }: { call: Call; total: number }) {
  const parts = [
    { label: callText.costOf.talk, usd: call.cost_usd },
    { label: callText.costOf.legs, usd: call.legs_cost_usd },
    { label: callText.costOf.speech, usd: call.speech_cost_usd },
  ].filter(({ usd }) => usd !== null && usd > 0);
  const breakdown = parts.map(({ label, usd }) => `${label}: ${money(usd!)}`).join('\n');
  return (
    <Stack gap={0} className="tabular" title={parts.length > 1 ? breakdown : undefined}>
      {money(total)}
    </Stack>
  );
}
