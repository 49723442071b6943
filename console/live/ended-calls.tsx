import { Anchor, Group, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { CallStateBadge, endText } from '../call/call-state.tsx';
import { partyName } from '../call/party.tsx';
import { callQuery } from '../call/queries.ts';
import { duration } from '../parts/format.ts';
import { liveText } from '../text/live.ts';
import type { LiveCall } from './live-data.ts';

/** Calls that ended while the page was open, so that none just vanishes. */
export function EndedCalls({ calls }: { calls: readonly LiveCall[] }) {
  if (calls.length === 0) return null;
  return (
    <section aria-label={liveText.ended}>
      <Title order={2} size="h6" mt="lg" mb="xs">
        {liveText.ended}
      </Title>
      <ul className="live-list">
        {calls.map((call) => (
          <EndedCall key={call.call_id} known={call} />
        ))}
      </ul>
    </section>
  );
}

/** A call that ended while the page had no connection is known only as it was before. */
function EndedCall({ known }: { known: LiveCall }) {
  const { data } = useQuery({ ...callQuery(known.call_id), enabled: !known.call_done, staleTime: 0 });
  const call = known.call_done ? known : (data ?? known);
  return (
    <li>
      <Group gap="sm" py={4}>
        {call.call_done && <CallStateBadge call={call} />}
        <Anchor component={Link} to={`/calls/${call.call_id}`} size="sm" className="tabular">
          {partyName(call, 'agent')} – {partyName(call, 'customer')}
        </Anchor>
        {call.call_done && (
          <Text size="sm" c="dimmed" className="tabular">
            {duration(call.talk_seconds ?? 0)}
          </Text>
        )}
        <Text size="sm" c="dimmed">
          {endText(call)}
        </Text>
      </Group>
    </li>
  );
}
