import { ActionIcon, Code, Drawer, Group, Stack, Text } from '@mantine/core';
import { ChevronDown, ChevronUp } from 'lucide-react';
import type { KeyboardEvent } from 'react';
import { CopyField } from '../../parts/copy-field.tsx';
import { Time } from '../../parts/time.tsx';
import { sipText } from '../../text/call.ts';
import type { SipMessage } from '../queries.ts';

interface MessageDrawerProps {
  messages: readonly SipMessage[];
  /** Null: closed. */
  chosen: number | null;
  onChoose: (index: number | null) => void;
}

/** One message as it was sent or received, with secrets masked by the server. */
export function MessageDrawer({ messages, chosen, onChoose }: MessageDrawerProps) {
  const message = chosen === null ? undefined : messages[chosen];
  const go = (step: number) => {
    const next = (chosen ?? 0) + step;
    if (messages[next] !== undefined) onChoose(next);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    go(step);
  };
  return (
    <Drawer
      opened={message !== undefined}
      onClose={() => onChoose(null)}
      position="right"
      size="lg"
      title={message?.summary ?? sipText.message}
      onKeyDown={onKeyDown}
    >
      {message && chosen !== null && (
        <Stack gap="sm">
          <Group justify="space-between">
            <Text size="sm" c="dimmed">
              <Time at={message.at} show="time" /> · {message.transport.toUpperCase()} ·{' '}
              {sipText.addresses(message.local ?? '?', message.remote ?? '?')}
            </Text>
            <Group gap={4}>
              <Text size="sm" c="dimmed" className="tabular">
                {sipText.position(chosen + 1, messages.length)}
              </Text>
              <ActionIcon
                variant="default"
                aria-label={sipText.previous}
                disabled={chosen === 0}
                onClick={() => go(-1)}
              >
                <ChevronUp size={16} />
              </ActionIcon>
              <ActionIcon
                variant="default"
                aria-label={sipText.next}
                disabled={chosen === messages.length - 1}
                onClick={() => go(1)}
              >
                <ChevronDown size={16} />
              </ActionIcon>
            </Group>
          </Group>
          <CopyField value={message.sip_call_id} label={sipText.callId} />
          <Code block tabIndex={0} role="region" aria-label={sipText.text} className="wrapped sip-text">
            {message.text}
          </Code>
        </Stack>
      )}
    </Drawer>
  );
}
