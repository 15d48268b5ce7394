"""Reads a Perfetto trace by Perfetto's own schema: PACKAGE is where `perfetto` and `protobuf` are installed, FILE the trace.
Prints as JSON what its trace processor would make of it, and fails where that would count an error."""

import json
import sys
from collections import defaultdict

sys.path.insert(0, sys.argv[1])
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema

REALTIME, MONOTONIC_COARSE = 1, 4
BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4

trace = schema.Trace()
with open(sys.argv[2], "rb") as file:
    trace.ParseFromString(file.read())


def check_known(message):
    """Fails if the message has a field that the schema has not, or has with another type."""
    unknown = schema.Trace.FromString(message.SerializeToString())
    unknown.DiscardUnknownFields()
    assert unknown.SerializeToString() == message.SerializeToString(), "unknown fields"


check_known(trace)
clocks, tracks, interned = {}, {}, defaultdict(dict)
counters, events, processes, owners = defaultdict(list), defaultdict(list), [], {}
samples, next_index, cleared = [], 0, False


def interned_lookup(kind, iid):
    assert iid in interned[kind], f"{kind} {iid} is not defined"
    return interned[kind][iid]


def stack_of(callstack):
    """The frames of a call stack, the outermost first."""
    frames = [interned_lookup("frames", iid) for iid in interned_lookup("callstacks", callstack).frame_ids]
    for frame in frames:
        mapping = interned_lookup("mappings", frame.mapping_id)
        interned_lookup("build_ids", mapping.build_id)
        for path in mapping.path_string_ids:
            interned_lookup("mapping_paths", path)
    return [{
        "name": interned_lookup("function_names", frame.function_name_id).str.decode(),
        "file": interned_lookup("source_paths", frame.source_path_iid).str.decode() if frame.source_path_iid else "",
        "line": frame.line_number,
    } for frame in frames]


def path_of(uuid):
    """The names of a track and those above it, without the process."""
    track = tracks[uuid]
    names = [track.name] if track.HasField("name") else []
    return (path_of(track.parent_uuid) if track.parent_uuid else []) + names


def process_of(uuid):
    """The number of the process to which a track belongs."""
    track = tracks[uuid]
    return track.process.pid if track.HasField("process") else process_of(track.parent_uuid)


for packet in trace.packet:
    assert packet.trusted_packet_sequence_id == 1
    cleared |= bool(packet.sequence_flags & 1)
    assert cleared, "the first packet does not begin the state of the sequence"
    for clock in packet.clock_snapshot.clocks:
        clocks[clock.clock_id] = clock.timestamp
    if packet.HasField("timestamp"):
        assert packet.timestamp_clock_id == REALTIME
    if packet.HasField("track_descriptor"):
        track = packet.track_descriptor
        assert track.uuid not in tracks and (not track.parent_uuid or track.parent_uuid in tracks)
        # Those of the same name would be shown as one.
        siblings = [other for other in tracks.values() if other.parent_uuid == track.parent_uuid]
        assert not track.name or track.name not in [other.name for other in siblings], f"two tracks {track.name}"
        tracks[track.uuid] = track
        if track.HasField("process"):
            assert track.process.pid not in [other["pid"] for other in processes], f"two tracks of process {track.process.pid}"
            processes.append({"pid": track.process.pid, "name": track.process.process_name})
    for field, values in packet.interned_data.ListFields():
        for value in values:
            assert value.iid not in interned[field.name], f"{field.name} {value.iid} is defined twice"
            interned[field.name][value.iid] = value
    if packet.HasField("track_event"):
        event = packet.track_event
        name = "/".join(path_of(event.track_uuid))
        assert owners.setdefault(name, process_of(event.track_uuid)) == process_of(event.track_uuid), f"two processes have {name}"
        if event.type == COUNTER:
            assert tracks[event.track_uuid].HasField("counter")
            value = event.counter_value if event.HasField("counter_value") else event.double_counter_value
            counters[name].append([packet.timestamp, value, tracks[event.track_uuid].counter.unit])
        else:
            events[name].append([packet.timestamp, event.type, event.name])
    if packet.HasField("profile_packet"):
        assert packet.profile_packet.index == next_index
        next_index += 1
        for dump in packet.profile_packet.process_dumps:
            for sample in dump.samples:
                samples.append({"stack": stack_of(sample.callstack_id), "allocated": sample.self_allocated,
                                "freed": sample.self_freed, "blocks": sample.alloc_count,
                                "freed_blocks": sample.free_count, "time": dump.timestamp, "pid": dump.pid})
        continued = packet.profile_packet.continued

assert not continued, "the heap profile does not end"
assert MONOTONIC_COARSE in clocks and clocks[MONOTONIC_COARSE] == clocks[REALTIME]

# Slices, as the trace processor pairs them: by time, and by their order in the file at the same time.
slices, instants = defaultdict(list), {}
for name, of_track in events.items():
    instants[name] = [[time, text] for time, kind, text in of_track if kind == INSTANT]
    open_slices = []
    for time, kind, text in sorted(of_track, key=lambda event: event[0]):
        if kind == BEGIN:
            open_slices.append((time, text))
        elif kind == END:
            begin, text = open_slices.pop()
            slices[name].append([begin, time - begin, text, len(open_slices)])
    assert not open_slices, f"a slice of {name} does not end"

json.dump({"start": clocks[REALTIME], "processes": processes, "owners": owners, "counters": counters, "slices": slices,
           "instants": instants, "samples": samples}, sys.stdout)
