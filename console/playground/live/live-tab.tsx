import { SegmentedControl } from '@mantine/core';
import { useUrlSearch } from '../../app/url-search.ts';
import { transcriptionText } from '../../text/speech.ts';
import { FileTranscription } from './file-transcription.tsx';
import { MicrophoneTranscription } from './microphone-transcription.tsx';

/** Transcription of the microphone, or of a file (`?source=file`). */
export function LiveTab() {
  const [search, change] = useUrlSearch();
  const isFile = search.source === 'file';
  const source = (
    <SegmentedControl
      aria-label={transcriptionText.source}
      fullWidth
      value={isFile ? 'file' : 'microphone'}
      onChange={(value) => change({ source: value === 'file' ? value : undefined })}
      data={[
        { value: 'microphone', label: transcriptionText.microphone },
        { value: 'file', label: transcriptionText.file },
      ]}
    />
  );
  return isFile ? <FileTranscription source={source} /> : <MicrophoneTranscription source={source} />;
}
