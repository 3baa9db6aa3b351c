//! The profiler's memory report, and its trace as events and as a file.

mod rehearsal_support;

use keyway::nn::{BatchNorm2d, Conv2d, ConvOptions, Flatten, MaxPool2d, Module, Relu, Sequential};
use keyway::optim::{Optimizer, Sgd, SgdOptions};
use keyway::profiler::{self, Event, EventKind, Report, Trace, TraceError};
use keyway::{MemoryFormat, Result, Tensor};
use rehearsal_support::ramp;

fn row<'a>(report: &'a Report, op: &str) -> &'a profiler::OpStats {
    report.rows.iter().find(|row| row.op == op).unwrap_or_else(|| panic!("no row of {op}: {report}"))
}

/// One step of training; what is pooled and flattened at the end decides whether memory must be reordered.
fn step(flatten: bool) -> Result<Trace> {
    let options = || ConvOptions::default().padding(1);
    let mut model = Sequential::new()
        .push(Conv2d::without_bias(3, 8, 3, options())?)
        .push(BatchNorm2d::new(8)?)
        .push(Relu)
        .push(MaxPool2d::new(2))
        .push_named("head", Conv2d::new_with(8, 4, 3, options())?);
    if flatten {
        model = model.push(Flatten::default());
    }
    model.to_memory_format(MemoryFormat::ChannelsLast)?;
    let x = ramp(&[2, 3, 8, 8]).to(MemoryFormat::ChannelsLast)?;
    let mut optimizer = Sgd::new(model.parameters(), SgdOptions { momentum: 0.9, ..SgdOptions::default() })?;
    let profile = profiler::trace();
    for _ in 0..2 {
        optimizer.zero_grad();
        model.forward(&x)?.square()?.mean_all()?.backward()?;
        optimizer.step()?;
    }
    Ok(profile.trace())
}

fn info(event: &Event) -> Option<&profiler::CallInfo> {
    match &event.kind {
        EventKind::Op(info) | EventKind::Reordering(info, _) => Some(info),
        _ => None,
    }
}

/// The name of each event with those of the events around it, the innermost first; fails unless events nest.
fn nested(trace: &Trace) -> Vec<Vec<&str>> {
    let mut open: Vec<&Event> = Vec::new();
    let mut all = Vec::new();
    for event in trace.events.iter().filter(|event| !matches!(event.kind, EventKind::FormatChange(_))) {
        let end = |event: &Event| event.start_ns + event.duration_ns;
        while open.last().is_some_and(|outer| end(outer) <= event.start_ns && outer.duration_ns > 0) {
            open.pop();
        }
        if let Some(outer) = open.last() {
            assert!(end(event) <= end(outer), "{event:?} ends after {outer:?}");
        }
        open.push(event);
        all.push(open.iter().rev().map(|event| &*event.name).collect());
    }
    all
}

#[test]
fn rows_tell_bytes_key_and_shapes() {
    let x = ramp(&[2, 3, 4, 4]).to(MemoryFormat::ChannelsLast).unwrap();
    let y = ramp(&[5]);
    let profile = profiler::profile();
    for _ in 0..3 {
        x.exp().unwrap();
    }
    y.exp().unwrap();
    x.permute([0, 2, 3, 1]).unwrap();
    let report = profile.report();
    // Served by one kernel or by two, depending on what is installed.
    let exp: Vec<_> = report.rows.iter().filter(|row| row.op == "exp").collect();
    assert_eq!(exp.iter().map(|row| row.bytes).sum::<u64>(), 3 * 2 * 96 * 4 + 2 * 5 * 4);
    assert!(exp.iter().all(|row| row.key.starts_with("cpu/") && row.key.ends_with("/f32")), "{exp:?}");
    let mut shapes: Vec<_> = exp.iter().flat_map(|row| &row.shapes).collect();
    shapes.sort_by_key(|shapes| shapes.calls);
    let [plain, images] = shapes[..] else { panic!("{shapes:?}") };
    assert_eq!((plain.calls, plain.inputs.as_slice()), (1, ["f32[5]".to_string()].as_slice()));
    assert_eq!((images.calls, images.bytes), (3, 3 * 2 * 96 * 4));
    assert_eq!(images.inputs, ["f32[2,3,4,4] channels_last"]);
    assert_eq!(images.outputs, images.inputs);
    // A view touches no elements.
    assert_eq!((row(&report, "permute").bytes, row(&report, "permute").served_by.as_str()), (0, "(view)"));
    assert_eq!(row(&report, "permute").shapes[0].outputs, ["f32[2,4,4,3]"]);
    assert_eq!(report.bytes(), report.rows.iter().map(|row| row.bytes).sum::<u64>());
}

#[test]
fn scratch_memory_of_kernels_is_told_by_op_on_any_number_of_threads() {
    let x = ramp(&[2, 16, 24, 24]);
    let weight = ramp(&[32, 16, 3, 3]);
    x.conv2d(&weight, None).unwrap();
    let profile = profiler::trace();
    let y = x.conv2d(&weight, None).unwrap();
    y.relu().unwrap();
    let trace = profile.trace();
    let conv = row(&trace.report, "conv");
    // The packed weight at least.
    assert!(conv.scratch_bytes >= 32 * 16 * 9 * 4, "{conv:?}");
    assert_eq!(
        (conv.shapes[0].scratch_bytes, row(&trace.report, "relu").scratch_bytes),
        (conv.scratch_bytes, 0)
    );
    assert_eq!(
        trace.report.scratch_bytes(),
        conv.scratch_bytes,
        "what a call takes counts once: {}",
        trace.report
    );
    let event = trace.events.iter().find(|event| &*event.name == "conv").unwrap();
    assert_eq!(event.scratch_bytes, conv.scratch_bytes);
    let mut file = Vec::new();
    trace.write_json(&mut file).unwrap();
    assert_eq!(Trace::read_json(&file[..]).unwrap(), trace);
    drop(profile);
    assert_eq!(keyway_dispatcher::scratch_count::so_far(), 0, "nothing is counted without a profile");
}

#[test]
fn an_expanded_argument_counts_once_and_a_target_of_a_copy_not_as_read() {
    let (row_of_three, target) = (ramp(&[1, 3]), ramp(&[4, 3]));
    let wide = row_of_three.expand([4, 3]).unwrap();
    let profile = profiler::profile();
    target.copy_(&wide).unwrap();
    let report = profile.report();
    assert_eq!(row(&report, "copy").bytes, 3 * 4 + 12 * 4);
    assert!(report.reorderings.is_empty(), "a copy that repeats its source keeps the order: {report}");
}

#[test]
fn a_transposed_copy_is_a_reordering_with_its_caller_and_bytes() {
    let x = ramp(&[3, 4]).t().unwrap();
    let profile = profiler::trace();
    x.reshape([12]).unwrap();
    x.contiguous().unwrap();
    ramp(&[3, 4]).narrow(1, 1, 2).unwrap().contiguous().unwrap();
    let trace = profile.trace();
    let mut found = trace.report.reorderings.clone();
    found.sort_by_key(|found| found.callers.len());
    let [direct, inside] = &found[..] else { panic!("{found:?}") };
    assert_eq!((direct.callers.len(), direct.location().as_str()), (0, "the program itself"));
    assert_eq!(
        (inside.op.as_str(), inside.callers.as_slice()),
        ("clone", ["reshape".to_string()].as_slice())
    );
    assert_eq!((inside.from.as_str(), inside.to.as_str()), ("f32[4,3] strides [1,4]", "f32[4,3]"));
    assert_eq!((inside.calls, inside.bytes), (1, 96));
    assert!(inside.ns > 0);
    let events: Vec<&str> = trace
        .events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::Reordering(_, caller) => Some(&**caller),
            _ => None,
        })
        .collect();
    assert_eq!(events, ["reshape", "the program itself"]);
}

#[test]
fn a_training_step_in_channels_last_reorders_nothing() -> Result<()> {
    let trace = step(false)?;
    assert!(trace.report.reorderings.is_empty(), "{}", trace.report);
    assert!(trace.report.format_changes.is_empty(), "{}", trace.report);
    let conv = row(&trace.report, "conv");
    assert!(conv.shapes.iter().all(|shapes| shapes.inputs[0].ends_with("channels_last")), "{conv:?}");
    Ok(())
}

#[test]
fn a_flattened_image_is_reordered_in_a_module_and_in_its_derivative() -> Result<()> {
    let trace = step(true)?;
    let found = &trace.report.reorderings;
    let forward = found.iter().find(|found| found.path == "5").unwrap_or_else(|| panic!("{found:?}"));
    assert_eq!((forward.location().as_str(), forward.calls), ("reshape, module 5", 2));
    assert_eq!(forward.from, "f32[2,4,4,4] channels_last");
    let names = nested(&trace);
    assert!(names.iter().any(|around| around[..] == ["clone", "reshape", "5 (Flatten)"]), "{names:?}");
    Ok(())
}

#[test]
fn ops_of_a_backward_pass_stand_in_their_derivatives() -> Result<()> {
    let trace = step(false)?;
    let names = nested(&trace);
    let holds = |wanted: &[&str]| names.iter().any(|around| around.ends_with(wanted));
    assert!(holds(&["conv_weight_grad", "backward of conv", "backward"]), "{names:?}");
    assert!(holds(&["Sgd.step"]) && holds(&["conv", "head (Conv2d)"]), "{names:?}");
    let count = |op: &str| trace.events.iter().filter(|event| &*event.name == op).count() as u64;
    for row in &trace.report.rows {
        let of_op = trace.report.rows.iter().filter(|other| other.op == row.op);
        assert_eq!(count(&row.op), of_op.map(|row| row.calls).sum::<u64>(), "{}", row.op);
    }
    Ok(())
}

#[test]
fn own_times_follow_from_the_nesting_and_add_up() -> Result<()> {
    let trace = step(true)?;
    let ops: Vec<&Event> = trace.events.iter().filter(|event| info(event).is_some()).collect();
    // The time of each op less that of the ops right inside.
    let mut own: Vec<u64> = ops.iter().map(|event| event.duration_ns).collect();
    let mut open: Vec<usize> = Vec::new();
    for (i, event) in ops.iter().enumerate() {
        let end = |i: usize| ops[i].start_ns + ops[i].duration_ns;
        while open.last().is_some_and(|&outer| end(outer) <= event.start_ns) {
            open.pop();
        }
        if let Some(&outer) = open.last() {
            own[outer] -= event.duration_ns;
        }
        open.push(i);
    }
    assert_eq!(own.iter().sum::<u64>(), trace.report.op_ns());
    let relu: u64 =
        ops.iter().zip(&own).filter(|(event, _)| &*event.name == "relu").map(|(_, own)| own).sum();
    assert_eq!(relu, row(&trace.report, "relu").self_ns);
    Ok(())
}

#[test]
fn an_op_that_changes_the_format_is_told_once_for_each_place() -> Result<()> {
    let x = ramp(&[2, 3, 4, 4]).to(MemoryFormat::ChannelsLast)?;
    let weight = ramp(&[5, 4]);
    let profile = profiler::trace();
    for _ in 0..3 {
        x.linear(&weight, None)?;
    }
    x.relu()?;
    // Asked for, or of the same memory: nothing is wrong with it.
    x.contiguous()?.to(MemoryFormat::ChannelsLast)?;
    x.permute([0, 2, 3, 1])?;
    let trace = profile.trace();
    // Told of the innermost op, by which the others around it change theirs.
    let [change] = &trace.report.format_changes[..] else { panic!("{}", trace.report) };
    assert_eq!((change.op.as_str(), change.calls), ("matmul", 3));
    assert_eq!((change.from.as_str(), change.to.as_str()), ("channels_last", "contiguous"));
    assert_eq!(
        (change.inputs[0].as_str(), change.outputs[0].as_str()),
        ("f32[2,3,4,4] channels_last", "f32[2,3,4,5]")
    );
    assert_eq!(change.location(), "linear");
    let told = trace.events.iter().filter(|event| matches!(event.kind, EventKind::FormatChange(_)));
    assert_eq!(
        told.map(|event| &*event.name).collect::<Vec<_>>(),
        ["matmul makes contiguous of channels_last"]
    );
    Ok(())
}

#[test]
fn an_op_of_both_formats_is_told() -> Result<()> {
    let x = ramp(&[2, 3, 4, 4]);
    let last = x.to(MemoryFormat::ChannelsLast)?;
    let profile = profiler::profile();
    last.add(&x)?;
    last.add(&last)?;
    let report = profile.report();
    let [change] = &report.format_changes[..] else { panic!("{report}") };
    assert_eq!((change.op.as_str(), change.calls), ("add", 1));
    assert_eq!((change.from.as_str(), change.to.as_str()), ("both formats", "channels_last"));
    Ok(())
}

#[test]
fn of_many_tensors_the_first_are_told() {
    let many: Vec<_> = (1..21).map(|size| ramp(&[size])).collect();
    let profile = profiler::profile();
    Tensor::cat(&many, 0).unwrap();
    let report = profile.report();
    let [shapes] = &row(&report, "cat").shapes[..] else { panic!("{report}") };
    assert_eq!(shapes.inputs.len(), 17);
    assert_eq!((shapes.inputs[0].as_str(), shapes.inputs[16].as_str()), ("f32[1]", "and 4 more"));
    assert_eq!(shapes.bytes, 2 * 210 * 4);
}

#[test]
fn a_file_gives_the_same_trace_and_table() -> Result<()> {
    let mut trace = step(true)?;
    // Names may have any text.
    trace.events[0].name = "a \"name\"\n\u{1b}[31m é".into();
    let mut file = Vec::new();
    trace.write_json(&mut file).unwrap();
    let read = Trace::read_json(&file[..])?;
    assert_eq!((read.events.len(), read.dropped), (trace.events.len(), 0));
    assert_eq!(read.events, trace.events);
    assert_eq!(read.report.rows, trace.report.rows);
    assert_eq!(read.report.to_string(), trace.report.to_string());
    // The fields that trace viewers require.
    let json: serde_json::Value = serde_json::from_slice(&file).unwrap();
    let events = json["traceEvents"].as_array().unwrap();
    for event in events {
        assert!(event["name"].is_string() && event["pid"].is_u64() && event["tid"].is_u64(), "{event}");
        match event["ph"].as_str().unwrap() {
            "X" => assert!(event["ts"].as_f64().unwrap() >= 0.0 && event["dur"].as_f64().unwrap() >= 0.0),
            "i" => assert!(event["ts"].is_f64() && event["s"] == "t"),
            "M" => assert!(event["args"]["name"].is_string(), "{event}"),
            other => panic!("{other}"),
        }
    }
    assert_eq!(events.iter().filter(|event| event["ph"] == "M").count(), 2);
    Ok(())
}

#[test]
fn damaged_and_foreign_files_are_told_apart() -> Result<()> {
    let mut file = Vec::new();
    step(false)?.write_json(&mut file).unwrap();
    for length in [0, 1, 100, file.len() / 2, file.len() - 3] {
        let error = Trace::read_json(&file[..length]).unwrap_err();
        assert!(matches!(error, TraceError::Damaged { .. }), "{length}: {error}");
        assert!(error.to_string().contains("damaged") && error.to_string().contains("line"), "{error}");
    }
    for foreign in
        ["{}", "[]", "3", "{\"traceEvents\":[]}", "[{\"name\":\"a\",\"ph\":\"X\"}]", "{\"keyway\":4}"]
    {
        let error = Trace::read_json(foreign.as_bytes()).unwrap_err();
        assert!(matches!(error, TraceError::Foreign), "{foreign}: {error}");
    }
    let newer = "{\"keyway\":{\"version\":99},\"traceEvents\":[]}";
    assert!(matches!(Trace::read_json(newer.as_bytes()), Err(TraceError::Version { got: 99, .. })));
    let hollow = "{\"keyway\":{\"version\":2},\"traceEvents\":[]}";
    assert!(matches!(Trace::read_json(hollow.as_bytes()), Err(TraceError::Damaged { .. })));
    // A number that no event can have breaks nothing.
    let text = String::from_utf8(file).unwrap().replacen("\"ts\":", "\"ts\":-1e300,\"was\":", 1);
    assert!(Trace::read_json(text.as_bytes()).is_ok());
    Ok(())
}

#[test]
fn only_so_many_events_are_kept_and_all_calls_are_counted() {
    let x = ramp(&[4]);
    let profile = profiler::trace_at_most(10);
    for _ in 0..50 {
        x.mul(2.0).unwrap();
    }
    let trace = profile.trace();
    assert_eq!((trace.events.len(), trace.dropped, trace.report.calls()), (10, 40, 50));
    let mut file = Vec::new();
    trace.write_json(&mut file).unwrap();
    assert_eq!(Trace::read_json(&file[..]).unwrap().dropped, 40);
}

#[test]
fn shapes_without_end_share_a_row_and_are_still_seen() {
    let profile = profiler::profile();
    for size in 2..5002 {
        ramp(&[size]).neg().unwrap();
    }
    let square = ramp(&[70, 71]).t().unwrap();
    square.contiguous().unwrap();
    let report = profile.report();
    let neg = row(&report, "neg");
    assert_eq!((neg.calls, neg.shapes[0].inputs[0].as_str()), (5000, "(others)"));
    assert!(neg.shapes.len() < 4200, "{}", neg.shapes.len());
    assert_eq!(neg.bytes, (2..5002).map(|size| size * 8).sum::<u64>());
    assert_eq!(report.reorderings.len(), 1, "{:?}", report.reorderings);
    assert_eq!(report.reorderings[0].bytes, 2 * 4 * 70 * 71);
}

#[test]
fn a_profile_within_another_is_added_with_its_events() {
    let x = ramp(&[3, 4]).t().unwrap();
    let outer = profiler::trace_at_most(4);
    x.mul(2.0).unwrap();
    let inner = profiler::profile();
    x.contiguous().unwrap();
    assert_eq!(inner.report().reorderings.len(), 1);
    drop(inner);
    for _ in 0..3 {
        x.contiguous().unwrap();
    }
    let trace = outer.trace();
    let names: Vec<&str> = trace.events.iter().map(|event| &*event.name).collect();
    assert_eq!((names.as_slice(), trace.dropped), (["mul", "clone", "clone", "clone"].as_slice(), 1));
    assert!(trace.events.is_sorted_by_key(|event| event.start_ns));
    assert_eq!(trace.report.reorderings[0].calls, 4);
}

#[test]
fn what_panics_leaves_no_frame_behind() {
    let x = ramp(&[3, 4]).t().unwrap();
    let profile = profiler::trace();
    let caught = std::panic::catch_unwind(|| {
        let _scope = profiler::scope("part");
        panic!("on purpose");
    });
    assert!(caught.is_err());
    x.contiguous().unwrap();
    assert_eq!(profile.report().reorderings[0].location(), "the program itself");
    assert_eq!(nested(&profile.trace()).last().unwrap().as_slice(), ["clone"]);
}

/// The events as their names with the names of the events around them.
fn names(trace: &Trace) -> Vec<String> {
    nested(trace).iter().map(|around| around.join(" in ")).collect()
}

/// The number of events; fails unless they nest.
fn nested_depths(trace: &Trace) -> usize {
    let mut around: Vec<u64> = Vec::new();
    for event in &trace.events {
        let end = event.start_ns + event.duration_ns;
        while around.last().is_some_and(|outer| *outer <= event.start_ns) {
            around.pop();
        }
        assert!(around.last().is_none_or(|outer| end <= *outer), "{event:?}");
        around.push(end);
    }
    trace.events.len()
}

#[test]
fn scopes_that_end_in_any_order_are_events_that_nest() {
    let x = ramp(&[64, 64]);
    let work = || drop(x.exp().unwrap());
    // Each scope begins before the previous one ends.
    let profile = profiler::trace();
    let mut part = profiler::scope("load");
    for name in ["train", "test"] {
        work();
        part = profiler::scope(name);
    }
    work();
    drop(part);
    let expected = ["load", "exp in load", "train", "exp in train", "test", "exp in test"];
    assert_eq!(names(&profile.trace()), expected);
    drop(profile);

    // The first ends first, at nearly the same time.
    let profile = profiler::trace();
    let scopes: Vec<_> = ["a", "b", "c"].into_iter().map(profiler::scope).collect();
    work();
    drop(scopes);
    assert_eq!(names(&profile.trace()), ["a", "b in a", "c in b in a", "exp in c in b in a"]);
    drop(profile);

    // Many, in each order, take no time worth mention.
    for reversed in [false, true] {
        let profile = profiler::trace();
        let mut scopes: Vec<_> = (0..40_000).map(|_| profiler::scope("s")).collect();
        let mut state = 7u64;
        while !scopes.is_empty() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = if reversed { state as usize % scopes.len() } else { scopes.len() - 1 };
            drop(scopes.swap_remove(at));
        }
        assert_eq!(nested_depths(&profile.trace()), 40_000);
    }
    let profile = profiler::trace();
    drop((0..40_000).map(|_| profiler::scope("s")).collect::<Vec<_>>());
    assert_eq!(nested_depths(&profile.trace()), 40_000);
    drop(profile);

    // An event that ends early does not contain later calls.
    let model = Sequential::new().push_named("head", Relu);
    let profile = profiler::trace();
    let outer = profiler::scope("outer");
    let inner = profiler::scope("inner");
    drop(outer);
    model.forward(&x).unwrap();
    drop(inner);
    let trace = profile.trace();
    assert!(names(&trace).iter().any(|name| name == "relu in head (Relu) in inner"), "{:?}", names(&trace));
}

#[test]
fn the_thread_in_a_file_is_that_which_was_profiled() {
    let profiled = |name: &str| {
        let body = || {
            let profile = profiler::trace();
            ramp(&[2]).exp().unwrap();
            profile.trace()
        };
        std::thread::Builder::new().name(name.to_string()).spawn(body).unwrap().join().unwrap()
    };
    let [first, second] = ["wörker \"1\"", "second"].map(profiled);
    assert_eq!((first.thread.name.as_str(), first.thread.process), ("wörker \"1\"", std::process::id()));
    assert_ne!(first.thread.id, second.thread.id);
    // Another thread may have the main thread's name.
    let [main, other] = ["main", "main"].map(profiled);
    assert_ne!(main.thread.id, other.thread.id);
    for trace in [first, second] {
        let mut file = Vec::new();
        trace.write_json(&mut file).unwrap();
        assert_eq!(Trace::read_json(&file[..]).unwrap(), trace);
        let json: serde_json::Value = serde_json::from_slice(&file).unwrap();
        let lines = json["traceEvents"].as_array().unwrap();
        assert!(lines.iter().all(|line| line["tid"] == trace.thread.id), "{lines:?}");
    }
}

#[test]
fn a_file_says_where_events_were_left_out_and_escapes_what_perfetto_refuses() {
    let profile = profiler::trace_at_most(1);
    let model = Sequential::new().push_named("a\u{7f}b", keyway::nn::Flatten::default());
    // Flattened, an image in channels_last is reordered, and the figures tell where.
    let x = ramp(&[2, 3, 4, 4]).to(MemoryFormat::ChannelsLast).unwrap();
    model.forward(&x).unwrap();
    let trace = profile.trace();
    assert!(trace.dropped > 0);
    assert!(trace.report.reorderings.iter().any(|r| r.path.contains('\u{7f}')), "{:?}", trace.report);
    let mut file = Vec::new();
    trace.write_json(&mut file).unwrap();
    assert!(!file.contains(&0x7f));
    let text = String::from_utf8(file).unwrap();
    let last = text.lines().rev().find(|line| line.starts_with("{\"name\"")).unwrap();
    assert!(last.contains(&format!("{} more events left out", trace.dropped)), "{last}");
    assert_eq!(Trace::read_json(text.as_bytes()).unwrap(), trace);
}

#[test]
fn profiles_may_end_in_any_order_and_keep_their_own_numbers_of_events() {
    let x = ramp(&[4]);
    let ops = |profile: &profiler::Profile| -> Vec<String> {
        profile.trace().events.iter().map(|event| event.name.to_string()).collect()
    };
    // Each event begins before the previous one ends.
    let mut profile = profiler::trace();
    x.relu().unwrap();
    assert_eq!(ops(&profile), ["relu"]);
    for _ in 0..2 {
        profile = profiler::trace();
        x.exp().unwrap();
        x.tanh().unwrap();
        assert_eq!((ops(&profile), profile.report().calls()), (vec!["exp".to_string(), "tanh".into()], 2));
    }
    drop(profile);

    // The outer one ends first, and the innermost is added to the one that is around it then.
    let [outer, middle, inner] = [(); 3].map(|()| profiler::trace());
    x.exp().unwrap();
    let part = profiler::scope("part");
    drop(outer);
    x.tanh().unwrap();
    drop(part);
    assert_eq!((ops(&middle).len(), ops(&inner)), (0, vec!["exp".to_string(), "part".into(), "tanh".into()]));
    drop(inner);
    assert_eq!(ops(&middle), ["exp", "part", "tanh"]);
    drop(middle);

    // A scope that ends while another profile lives, or begins there.
    let outer = profiler::trace();
    let across = profiler::scope("across");
    let inner = profiler::profile();
    let within = profiler::scope("within");
    x.exp().unwrap();
    drop(across);
    drop(inner);
    x.tanh().unwrap();
    drop(within);
    let mut seen = ops(&outer);
    seen.sort();
    assert_eq!(seen, ["across", "exp", "tanh", "within"]);
    drop(outer);

    // A profile within another keeps what the other one wants too, and shows what it wants itself.
    let outer = profiler::trace();
    let (few, none) = (profiler::trace_at_most(2), profiler::profile());
    for _ in 0..5 {
        x.exp().unwrap();
    }
    let trace = none.trace();
    assert_eq!((trace.events.len(), trace.dropped, trace.report.calls()), (0, 0, 5));
    drop(none);
    let trace = few.trace();
    assert_eq!((trace.events.len(), trace.dropped, trace.report.calls()), (2, 3, 5));
    drop(few);
    let trace = outer.trace();
    assert_eq!((trace.events.len(), trace.dropped, trace.report.calls()), (5, 0, 5));
}
