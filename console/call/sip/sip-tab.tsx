import { Alert, Button, Group, Paper, Text, Tooltip } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Download, Network } from 'lucide-react';
import { urlOf } from '../../app/url-of.ts';
import { useUrlSearch } from '../../app/url-search.ts';
import { Loaded } from '../../parts/loaded.tsx';
import { EmptyState } from '../../parts/states.tsx';
import { sipText } from '../../text/call.ts';
import type { Call } from '../call-data.ts';
import { type SipMessage, sipQuery } from '../queries.ts';
import { MessageDrawer } from './message-drawer.tsx';
import { SipLadder } from './sip-ladder.tsx';

/** The SIP messages as a ladder; the chosen one is in the address. */
export function SipTab({ call }: { call: Call }) {
  const query = useQuery(sipQuery(call.call_id));
  return (
    <Loaded query={query}>
      {({ messages, truncated }) =>
        messages.length === 0 ? (
          <EmptyState icon={Network} title={sipText.emptyTitle}>
            {call.call_done ? sipText.empty : sipText.emptyLive}
          </EmptyState>
        ) : (
          <Ladder call={call} messages={messages} isTruncated={truncated} />
        )
      }
    </Loaded>
  );
}

function Ladder({ call, messages, isTruncated }: { call: Call; messages: SipMessage[]; isTruncated: boolean }) {
  const [search, change] = useUrlSearch();
  const chosen = Number(search.message ?? Number.NaN) - 1;
  const choose = (index: number | null) => change({ message: index === null ? undefined : String(index + 1) });
  return (
    <Paper withBorder p="md">
      <Group justify="space-between" mb="sm">
        <Text size="sm" c="dimmed">
          {sipText.count(messages.length)}
        </Text>
        <Tooltip label={sipText.downloadHint}>
          <Button
            component="a"
            href={urlOf(`/dialer/click2call/${encodeURIComponent(call.call_id)}/sip.pcapng`)}
            download
            size="xs"
            variant="default"
            leftSection={<Download size={14} aria-hidden />}
          >
            {sipText.download}
          </Button>
        </Tooltip>
      </Group>
      {isTruncated && (
        <Alert color="yellow" mb="sm">
          {sipText.truncated}
        </Alert>
      )}
      <SipLadder call={call} messages={messages} chosen={chosen} onChoose={choose} />
      <MessageDrawer messages={messages} chosen={messages[chosen] === undefined ? null : chosen} onChoose={choose} />
    </Paper>
  );
}
