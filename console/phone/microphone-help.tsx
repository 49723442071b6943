import { Alert, Button } from '@mantine/core';
import { MicOff } from 'lucide-react';
import { microphoneText } from '../text/phone.ts';
import { isFault, type MicrophoneStatus } from './phone-state.ts';

/** Advice for an unusable microphone; nothing if it works. */
export function MicrophoneHelp({ status, onRetry }: { status: MicrophoneStatus; onRetry: () => void }) {
  if (!isFault(status)) return null;
  const { title, hint } = microphoneText[status];
  return (
    <Alert color="red" role="alert" title={title} icon={<MicOff size={18} aria-hidden />}>
      <p className="flush">{hint}</p>
      {status !== 'insecure' && (
        <Button size="xs" variant="default" mt="xs" onClick={onRetry}>
          {microphoneText.retry}
        </Button>
      )}
    </Alert>
  );
}
