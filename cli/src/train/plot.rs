//! The loss curve as SVG.

use plotters::prelude::*;

const SIZE: (u32, u32) = (800, 480);
const CURVE: RGBColor = RGBColor(0x1f, 0x5f, 0xa8);
const GRID: RGBColor = RGBColor(0xe4, 0xe4, 0xe4);
/// The maximum number of epochs that are marked by dots.
const DOTS: usize = 20;

/// Draws the mean loss of each epoch.
///
/// # Errors
/// Errors of the drawing.
pub fn loss_curve(losses: &[f64], title: &str) -> Result<String, String> {
    let mut svg = String::new();
    draw(losses, title, &mut svg).map_err(|error| error.to_string())?;
    Ok(svg)
}

fn draw(losses: &[f64], title: &str, svg: &mut String) -> Result<(), Box<dyn std::error::Error>> {
    let area = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let highest = losses.iter().copied().fold(0.0, f64::max);
    let top = if highest > 0.0 { highest * 1.05 } else { 1.0 };
    let mut chart = ChartBuilder::on(&area)
        .caption(title, ("sans-serif", 20))
        .margin(16)
        .x_label_area_size(48)
        .y_label_area_size(64)
        .build_cartesian_2d(0.0..losses.len().max(1) as f64, 0.0..top)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .x_labels(losses.len().clamp(2, 11))
        .x_label_formatter(&|epoch| format!("{epoch:.0}"))
        .y_label_formatter(&|loss| format!("{loss:.2}"))
        .x_desc("epoch")
        .y_desc("mean training loss (cross-entropy)")
        .label_style(("sans-serif", 14))
        .axis_desc_style(("sans-serif", 15))
        .draw()?;
    let points = || losses.iter().enumerate().map(|(i, loss)| ((i + 1) as f64, *loss));
    chart.draw_series(LineSeries::new(points(), CURVE.stroke_width(2)))?;
    if losses.len() <= DOTS {
        chart.draw_series(points().map(|point| Circle::new(point, 3, CURVE.filled())))?;
    }
    area.present()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::loss_curve;

    #[test]
    fn a_curve_has_axes_and_labels() {
        for losses in
            [vec![2.0, 1.0, 0.5], vec![1.0], vec![0.0; 3], (1..200).map(|i| 1.0 / f64::from(i)).collect()]
        {
            let svg = loss_curve(&losses, "mlp on digits").unwrap();
            for part in ["<svg", "mlp on digits", "epoch", "mean training loss", "</svg>"] {
                assert!(svg.contains(part), "{part}: {svg}");
            }
            assert!(!svg.contains("NaN"));
        }
    }
}
