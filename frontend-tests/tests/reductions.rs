//! Sums over every set of dimensions of strided inputs, compared with a loop over the elements.

use keyway::{Device, Tensor};
use keyway_dispatcher::device::{memory_stats, reset_peak};
use keyway_dispatcher::parallel::set_num_threads;

/// `sum[kept]` of a row-major array, in f64.
fn walked(values: &[f64], sizes: &[usize], dims: &[usize]) -> Vec<f64> {
    let kept: Vec<usize> = (0..sizes.len()).filter(|d| !dims.contains(d)).collect();
    let mut out = vec![0.0; kept.iter().map(|&d| sizes[d]).product()];
    for (i, value) in values.iter().enumerate() {
        let mut rest = i;
        let mut index = vec![0; sizes.len()];
        for d in (0..sizes.len()).rev() {
            index[d] = rest % sizes[d];
            rest /= sizes[d];
        }
        out[kept.iter().fold(0, |at, &d| at * sizes[d] + index[d])] += value;
    }
    out
}

fn ramp(sizes: &[usize]) -> Tensor {
    let values = (0..sizes.iter().product::<usize>()).map(|i| ((i * 37) % 101) as f32 - 50.0).collect();
    Tensor::from_vec(values, sizes).unwrap()
}

#[test]
fn any_dimensions_of_any_strides() {
    let t = ramp(&[3, 5, 4, 67]);
    let views = [
        t.clone(),
        t.transpose(0, 3).unwrap(),
        t.transpose(1, 2).unwrap(),
        t.transpose(1, 3).unwrap().transpose(0, 1).unwrap(),
        ramp(&[3, 1, 4, 1]).expand([3, 5, 4, 6]).unwrap(),
    ];
    for view in views {
        let values: Vec<f64> = view.to_vec_f64().unwrap();
        for mask in 1usize..16 {
            let dims: Vec<usize> = (0..4).filter(|d| mask >> d & 1 != 0).collect();
            let list: Vec<i64> = dims.iter().map(|&d| d as i64).collect();
            let expected = walked(&values, view.shape(), &dims);
            let got = if mask % 2 == 0 { view.sum_keepdim(&list) } else { view.sum(&list) };
            let got = got.unwrap().to_vec_f64().unwrap();
            assert_eq!(got, expected, "{:?} {:?} over {dims:?}", view.shape(), view.strides());
        }
    }
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let n = 700;
    let values: Vec<f32> = (0..n * n).map(|i| ((i as f32) * 0.7).sin() * 1e3).collect();
    let t = Tensor::from_vec(values, [n, n]).unwrap();
    let all = |t: &Tensor| -> Vec<f32> {
        let mut out = t.sum_all().unwrap().to_vec::<f32>().unwrap();
        for dim in [0, 1] {
            out.extend(t.sum(dim).unwrap().to_vec::<f32>().unwrap());
        }
        out
    };
    let mut results = Vec::new();
    for threads in [1, 2, 3] {
        set_num_threads(threads);
        results.push((all(&t), all(&t.transpose(0, 1).unwrap()), all(&t.reshape([7, 70_000]).unwrap())));
    }
    set_num_threads(0);
    assert!(results.windows(2).all(|pair| pair[0] == pair[1]));
}

/// Without a graph the differences of all pairs of rows, 256 MB here, are never in memory together.
#[test]
fn distances_are_those_of_the_graph_in_little_memory() {
    let [a, b] = [1000, 1001].map(|rows| Tensor::randn((rows, 64)).unwrap());
    let (few, wanted) = (a.narrow(0, 996, 4).unwrap(), a.requires_grad_(true).unwrap());
    let before = memory_stats(Device::CPU).unwrap().unwrap().in_use;
    reset_peak(Device::CPU).unwrap();
    let made = no_grad_of(|| a.cdist(&b));
    let peak = memory_stats(Device::CPU).unwrap().unwrap().peak_in_use - before;
    assert!(peak < 64 << 20, "{peak} bytes");
    assert_eq!(made.shape(), [1000, 1001]);
    let by_graph = wanted.narrow(0, 996, 4).unwrap().cdist(&b).unwrap();
    assert!(by_graph.requires_grad());
    let last = made.narrow(0, 996, 4).unwrap().to_vec::<f32>().unwrap();
    assert_eq!(last, by_graph.detach().to_vec::<f32>().unwrap());
    assert_eq!(last, few.detach().cdist(&b).unwrap().to_vec::<f32>().unwrap());
    let empty = b.narrow(0, 0, 0).unwrap();
    assert_eq!(empty.cdist(&b).unwrap().shape(), [0, 1001]);
    assert_eq!(b.cdist(&empty).unwrap().shape(), [1001, 0]);
}

fn no_grad_of(make: impl FnOnce() -> keyway::Result<Tensor>) -> Tensor {
    let _off = keyway::no_grad();
    make().unwrap()
}

#[test]
fn a_variance_beyond_the_dtype_is_infinite() {
    let x = Tensor::new([1e30f32, 0.0, -1.0, 3.0]).unwrap();
    assert_eq!(x.var_all().unwrap().item::<f32>().unwrap(), f32::INFINITY);
    assert!(Tensor::new([f32::INFINITY, 0.0]).unwrap().var_all().unwrap().item::<f32>().unwrap().is_nan());
}
